import { afterAwake, type Clock } from "#base/clock.ts";
import { grpcCode, GrpcError } from "#grpc/status.ts";

/** A message may take so long to come; 4 MiB do at 35 kB a second. */
const bodyMsMax = 120_000;

const tooMany = new GrpcError(
  grpcCode.unavailable,
  "this node is taking in as many large messages as it has memory for: try again in a moment",
);
const tooSlow = new GrpcError(grpcCode.deadlineExceeded, "the rest of the message has not come within two minutes");

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

/** What one call holds of it. */
export class HeldBodies {
  readonly #memory: BodyMemory;
  readonly #peer: object;
  readonly #cancelLate: () => void;
  #bytes = 0;

  /** `late` hears of it when the rest of the message does not come. */
  constructor(memory: BodyMemory, peer: object, clock: Clock, late: (why: GrpcError) => void) {
    this.#memory = memory;
    this.#peer = peer;
    this.#cancelLate = afterAwake(clock, bodyMsMax, () => late(tooSlow));
  }

  /** Throws where there is no room. */
  take(bytes: number): void {
    if (!this.#memory.take(this.#peer, bytes)) throw tooMany;
    this.#bytes += bytes;
  }

  /** All of the request is here. */
  whole(): void {
    this.#cancelLate();
  }

  give(): void {
    this.#cancelLate();
    this.#memory.give(this.#peer, this.#bytes);
    this.#bytes = 0;
  }
}
