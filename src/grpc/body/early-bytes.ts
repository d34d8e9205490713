/**
 * What a caller sends before it is authenticated. It is kept unparsed, and the stream's window stays closed: so an
 * unknown caller can make the server hold no more than the first windows of a connection, whatever lengths its messages
 * claim.
 */
export class EarlyBytes {
  #memory: Buffer = Buffer.allocUnsafe(4 * 1024);
  #length = 0;
  #hasEnded = false;

  get bytes(): Buffer {
    return this.#memory.subarray(0, this.#length);
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** The bytes are borrowed: they are copied. */
  add(bytes: Buffer, hasEnded: boolean): void {
    const length = this.#length + bytes.length;
    if (length > this.#memory.length) {
      const larger = Buffer.allocUnsafe(Math.max(length, 2 * this.#memory.length));
      this.#memory.copy(larger, 0, 0, this.#length);
      this.#memory = larger;
    }
    bytes.copy(this.#memory, this.#length);
    this.#length = length;
    this.#hasEnded ||= hasEnded;
  }
}
