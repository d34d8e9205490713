import type { PrintedFile } from "./printed-head.ts";

/** What a process printed, within bounds: the beginning and the end are kept, the middle is counted. */
export class BoundedOutput {
  readonly #halfMax: number;
  #head: Uint8Array[] = [];
  #headBytes = 0;
  #tail: Uint8Array[] = [];
  #tailBytes = 0;
  totalBytes = 0;

  constructor(bytesMax: number) {
    this.#halfMax = Math.max(1, Math.floor(bytesMax / 2));
  }

  add(chunk: Uint8Array): void {
    this.totalBytes += chunk.length;
    const room = this.#halfMax - this.#headBytes;
    if (room > 0) {
      this.#head.push(chunk.subarray(0, room));
      this.#headBytes += Math.min(room, chunk.length);
    }
    if (chunk.length > room) this.#addTail(chunk.subarray(Math.max(0, room)));
  }

  get head(): PrintedFile {
    let isOver = false;
    return {
      sizeBytes: () => (isOver ? this.bytes().length : this.#headBytes),
      read: (at, length) => (isOver ? this.bytes() : Buffer.concat(this.#head)).subarray(at, at + length),
      over: () => (isOver = true),
    };
  }

  get whole(): Uint8Array {
    return this.bytes();
  }

  bytes(): Uint8Array {
    const left = this.totalBytes - this.#headBytes - this.#tailBytes;
    const cut = left > 0 ? [Buffer.from(`\n... ${left} bytes left out ...\n`)] : [];
    return Buffer.concat([...this.#head, ...cut, ...this.#tail]);
  }

  /** The last lines, for people. */
  tail(lengthMax: number): string {
    const text = new TextDecoder().decode(this.bytes().slice(-lengthMax * 4));
    return text.length <= lengthMax ? text : text.slice(-lengthMax);
  }

  #addTail(chunk: Uint8Array): void {
    this.#tail.push(chunk);
    this.#tailBytes += chunk.length;
    for (;;) {
      const first = this.#tail[0];
      const over = this.#tailBytes - this.#halfMax;
      if (!first || over <= 0) return;
      if (first.length <= over) this.#tail.shift();
      else this.#tail[0] = first.subarray(over);
      this.#tailBytes -= Math.min(over, first.length);
    }
  }
}
