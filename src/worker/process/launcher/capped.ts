/**
 * Keeps a file that a process appends to within a limit: its beginning stays, the end is kept aside, and what is
 * between is counted. Checked and truncated now and then, so that printing costs a process no more than writing a file.
 */
import { closeSync, fstatSync, ftruncateSync, openSync, readSync, statSync, writeSync } from "node:fs";
import type { CappedFile, StreamEnd } from "#worker/process/protocol.ts";

const tailBytesMax = 64 * 1024;
const looksMax = 4;

/** How much of its beginning is always kept. */
export const headBytesOf = (bytesMax: number): number => bytesMax - Math.min(tailBytesMax, Math.floor(bytesMax / 4));

export class Capped implements Disposable {
  readonly #path: string;
  /** Most files never exceed the limit, and are never opened. */
  #fd: number | undefined;
  readonly #headMax: number;
  readonly #tailMax: number;
  readonly #bytesMax: number;
  #tail: Buffer = Buffer.alloc(0);
  /** Bytes that were removed, including those kept as the tail. */
  #cut = 0;

  constructor({ path, bytesMax }: CappedFile) {
    this.#path = path;
    this.#bytesMax = bytesMax;
    this.#headMax = headBytesOf(bytesMax);
    this.#tailMax = bytesMax - this.#headMax;
  }

  look(): void {
    const size = this.#size();
    if (size > this.#bytesMax) this.#cutBack(this.#open(), size);
  }

  /** When no process appends any more: appends the end to the beginning, with a line that says what is missing. */
  finish(): StreamEnd {
    const size = this.#size();
    if (this.#cut === 0 && size <= this.#bytesMax) return { bytes: size, leftOutBytes: 0 };
    const fd = this.#open();
    if (size > this.#headMax) this.#cutBack(fd, size);
    const leftOutBytes = this.#cut - this.#tail.length;
    const marker = leftOutBytes > 0 ? `\n... ${leftOutBytes} bytes left out ...\n` : "";
    const rest = Buffer.concat([Buffer.from(marker), this.#tail]);
    writeSync(fd, rest, 0, rest.length, this.#headMax);
    return { bytes: this.#headMax + rest.length, leftOutBytes };
  }

  [Symbol.dispose](): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }

  #size(): number {
    return this.#fd === undefined ? statSync(this.#path).size : fstatSync(this.#fd).size;
  }

  #open(): number {
    this.#fd ??= openSync(this.#path, "r+");
    return this.#fd;
  }

  /**
   * Bytes printed between the last look at the size and the truncation are lost without being counted. So the end is
   * read in pieces until the two are close together.
   */
  #cutBack(fd: number, size: number): void {
    let read = this.#headMax;
    for (let looks = looksMax; looks > 0 && size > read; looks -= 1) {
      this.#keepEnd(fd, read, size);
      read = size;
      size = fstatSync(fd).size;
    }
    ftruncateSync(fd, this.#headMax);
    this.#cut += size - this.#headMax;
  }

  #keepEnd(fd: number, from: number, to: number): void {
    const fresh = Buffer.alloc(Math.min(this.#tailMax, to - from));
    readSync(fd, fresh, 0, fresh.length, to - fresh.length);
    this.#tail = Buffer.concat([this.#tail, fresh]).subarray(-this.#tailMax || Infinity);
  }
}
