/**
 * Memory for messages that are still coming in, of all calls of a server. A connection may hold as much as is left for
 * all others. Without it a caller that begins hundreds of large messages and ends none would fill the machine.
 */
export class BodyMemory {
  readonly #bytesMax: number;
  readonly #byPeer = new WeakMap<object, { bytes: number }>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** False when there is no room. */
  take(peer: object, bytes: number): boolean {
    const own = this.#byPeer.get(peer) ?? { bytes: 0 };
    if (own.bytes + bytes > this.#bytesMax - this.#bytes - bytes) return false;
    this.#byPeer.set(peer, own);
    own.bytes += bytes;
    this.#bytes += bytes;
    return true;
  }

  give(peer: object, bytes: number): void {
    const own = this.#byPeer.get(peer);
    if (own) own.bytes -= bytes;
    this.#bytes -= bytes;
  }
}
