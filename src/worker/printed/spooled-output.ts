/**
 * What a runner prints itself, piece by piece, in a file of its own: there it waits until a stream has taken it
 * (live-output.ts). Beyond the limit nothing is kept but the number of bytes that were left out.
 */
import { closeSync, openSync, readSync, writeSync } from "node:fs";
import { wholeBytesMax } from "#worker/process.ts";
import type { PrintedFile } from "./printed-head.ts";

const heldBytesMax = 64 * 1024;

export class SpooledOutput implements PrintedFile, Disposable {
  readonly #fd: number;
  readonly #bytesMax: number;
  #written = 0;
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  leftOutBytes = 0;

  /** The file must not exist; it is readable for its owner only. */
  constructor(path: string, bytesMax: number) {
    this.#fd = openSync(path, "wx+", 0o600);
    this.#bytesMax = bytesMax;
  }

  /** Where the next piece begins. */
  get offset(): number {
    return this.#written + this.#heldBytes;
  }

  /** A piece is kept whole or not at all; false: it was left out. */
  write(piece: string | Uint8Array): boolean {
    const bytes = typeof piece === "string" ? Buffer.from(piece) : piece;
    if (this.leftOutBytes > 0 || this.offset + bytes.length > this.#bytesMax) {
      this.leftOutBytes += bytes.length;
      return false;
    }
    this.#hold(bytes);
    return true;
  }

  /** The last piece, such as one that says how much was left out: it does not count against the limit. */
  end(piece = ""): void {
    this.#hold(Buffer.from(piece));
    this.#flush();
  }

  sizeBytes(): number {
    this.#flush();
    return this.#written;
  }

  read(at: number, length: number): Uint8Array {
    const piece = Buffer.allocUnsafe(Math.max(0, Math.min(length, this.sizeBytes() - at)));
    return piece.subarray(0, readSync(this.#fd, piece, 0, piece.length, at));
  }

  over(): void {
    this.#flush();
  }

  /** All of it, unless it is too long for memory: then a stream has had it. */
  get whole(): Uint8Array | undefined {
    return this.sizeBytes() <= wholeBytesMax ? this.read(0, wholeBytesMax) : undefined;
  }

  [Symbol.dispose](): void {
    closeSync(this.#fd);
  }

  #hold(bytes: Uint8Array): void {
    this.#held.push(bytes);
    this.#heldBytes += bytes.length;
    if (this.#heldBytes >= heldBytesMax) this.#flush();
  }

  #flush(): void {
    if (this.#heldBytes === 0) return;
    const bytes = Buffer.concat(this.#held);
    [this.#held, this.#heldBytes] = [[], 0];
    for (let done = 0; done < bytes.length;)
      done += writeSync(this.#fd, bytes, done, bytes.length - done, this.#written + done);
    this.#written += bytes.length;
  }
}
