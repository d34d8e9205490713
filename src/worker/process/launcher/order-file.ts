/**
 * Where a lane's shell finds its next order. The file stays open and is overwritten: truncating and closing it each
 * time would make some file systems (ext4) flush it to disk first.
 */
import { closeSync, fchownSync, ftruncateSync, openSync, writeSync } from "node:fs";
import { Fault } from "#base/fault.ts";

/** Up to this size it never shrinks. */
const keptBytesMax = 4_096;

export class OrderFile implements Disposable {
  #fd: number | undefined;
  #bytes = 0;

  /** Readable for the group, if there is one, and for no other user. */
  constructor(path: string, gid: number | undefined) {
    this.#fd = openSync(path, "w", 0o640);
    if (gid !== undefined) fchownSync(this.#fd, process.getuid?.() ?? 0, gid);
  }

  write(order: string): void {
    if (this.#fd === undefined) return;
    // The rest of a longer earlier order would be run too, so it is overwritten with empty lines, which a shell
    // ignores.
    const text = order.padEnd(Math.min(this.#bytes, keptBytesMax), "\n");
    const bytes = writeSync(this.#fd, text, 0);
    this.#bytes = Math.max(this.#bytes, bytes);
    if (bytes < Buffer.byteLength(text)) throw new Fault("exhausted", "write order", { bytes });
    if (this.#bytes > bytes) ftruncateSync(this.#fd, bytes);
    this.#bytes = bytes;
  }

  [Symbol.dispose](): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }
}
