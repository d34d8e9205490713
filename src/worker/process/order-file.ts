/**
 * Where a lane's shell finds its next order. The file stays open and is written over: to empty and close it each time
 * would make some file systems (ext4) put it on the disk before anybody may go on.
 */
import { closeSync, fchownSync, ftruncateSync, openSync, writeSync } from "node:fs";

const blockBytes = 4_096;
/** Most orders are short, and one is written at a time. */
const block = Buffer.allocUnsafe(blockBytes);

export class OrderFile implements Disposable {
  #fd: number | undefined;
  #bytes = 0;

  /** Read by the group, if there is one, and by nobody else. */
  constructor(path: string, gid: number | undefined) {
    this.#fd = openSync(path, "w", 0o640);
    if (gid !== undefined) fchownSync(this.#fd, process.getuid?.() ?? 0, gid);
  }

  write(order: string): void {
    if (this.#fd === undefined) return;
    const bytes = Math.ceil(Math.max(1, Buffer.byteLength(order)) / blockBytes) * blockBytes;
    const whole = bytes === blockBytes ? block : Buffer.allocUnsafe(bytes);
    // What is left of a longer one before it would be taken for orders, too; empty lines mean nothing to a shell.
    whole.fill("\n", whole.write(order));
    for (let at = 0; at < bytes;) at += writeSync(this.#fd, whole, at, bytes - at, at);
    if (this.#bytes > bytes) ftruncateSync(this.#fd, bytes);
    this.#bytes = bytes;
  }

  [Symbol.dispose](): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }
}
