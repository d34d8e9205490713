/** A store's parts, read like a file: from beginning to end, into the memory that is sent. */
import type { FileHandle } from "node:fs/promises";

export class PartSource implements Pick<FileHandle, "readv"> {
  readonly #parts: AsyncIterator<Uint8Array>;
  #part: Uint8Array = new Uint8Array();
  #at = 0;
  #over = false;

  constructor(parts: AsyncIterable<Uint8Array>) {
    this.#parts = parts[Symbol.asyncIterator]();
  }

  /** The next bytes, whatever position is given: callers read sequentially. Fewer than requested only at the end. */
  async readv<T extends readonly NodeJS.ArrayBufferView[]>(buffers: T): Promise<{ bytesRead: number; buffers: T }> {
    let bytesRead = 0;
    for (const { buffer, byteOffset, byteLength } of buffers) {
      const target = new Uint8Array(buffer, byteOffset, byteLength);
      for (let filled = 0; filled < byteLength;) {
        if (this.#at === this.#part.length && !(await this.#next())) return { bytesRead, buffers };
        const bytes = this.#part.subarray(this.#at, this.#at + byteLength - filled);
        target.set(bytes, filled);
        filled += bytes.length;
        bytesRead += bytes.length;
        this.#at += bytes.length;
      }
    }
    return { bytesRead, buffers };
  }

  async close(): Promise<void> {
    this.#over = true;
    await this.#parts.return?.();
  }

  async #next(): Promise<boolean> {
    this.#at = 0;
    this.#part = new Uint8Array();
    while (!this.#over && this.#part.length === 0) {
      const next = await this.#parts.next();
      if (next.done === true) this.#over = true;
      else this.#part = next.value;
    }
    return this.#part.length > 0;
  }
}
