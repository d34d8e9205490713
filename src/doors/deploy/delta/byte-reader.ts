/** Reads a stream of bytes in pieces of a wanted length, and holds no more of it than one part. */
import { Fault } from "#base/fault.ts";

const none = new Uint8Array(0);

export class ByteReader implements AsyncDisposable {
  readonly #parts: AsyncIterator<Uint8Array>;
  #part: Uint8Array = none;
  #at = 0;

  constructor(parts: AsyncIterable<Uint8Array>) {
    this.#parts = parts[Symbol.asyncIterator]();
  }

  /** Up to `most` bytes, at least one; empty at the end. */
  async some(most: number): Promise<Uint8Array> {
    if (!(await this.#more())) return none;
    const taken = this.#part.subarray(this.#at, this.#at + most);
    this.#at += taken.length;
    return taken;
  }

  /** Fills it; throws where the stream is shorter. */
  async fill(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length;) {
      const part = await this.some(bytes.length - at);
      if (part.length === 0) throw wrong("it ends too early");
      bytes.set(part, at);
      at += part.length;
    }
  }

  /** A number in groups of seven bits, lowest first; undefined at the end. */
  async number(): Promise<number | undefined> {
    let value = 0;
    for (let scale = 1; scale <= 2 ** 49; scale *= 128) {
      if (this.#at >= this.#part.length && !(await this.#more())) {
        if (scale === 1) return undefined;
        throw wrong("it ends within a number");
      }
      const byte = this.#part[this.#at++] ?? 0;
      value += (byte & 127) * scale;
      if (byte >= 128) continue;
      if (!Number.isSafeInteger(value)) throw wrong("a number is too large");
      return value;
    }
    throw wrong("a number is too long");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.return?.();
  }

  /** Whether there is at least one byte more. */
  async #more(): Promise<boolean> {
    while (this.#at >= this.#part.length) {
      const { done, value } = await this.#parts.next();
      if (done) return false;
      this.#part = value;
      this.#at = 0;
    }
    return true;
  }
}

const wrong = (why: string): Fault => new Fault("corrupt", "read patch", { why });
