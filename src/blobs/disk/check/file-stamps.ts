/**
 * Which large files were found right, and when: for each entry a fingerprint of the file's inode as it was then, and
 * the time. Every change that goes through the file system changes the inode's ctime, so a file that was written to,
 * truncated or replaced since does not match; only bytes that rot on the medium do not show, and so a stamp ages.
 *
 * An entry's number may be reused: the new file has another fingerprint, so that a stale stamp is never valid for it.
 * Pure: no I/O, no clock.
 */
import type { Stats } from "node:fs";
import { entriesPerChunk } from "#blobs/disk/table/table.ts";

export type FileFacts = Pick<Stats, "ino" | "ctimeMs" | "size">;

/** Two words for each entry: fingerprint, second of the check. 0 means never. */
const stampWords = 2;

export class FileStamps {
  /** One for each chunk of the table that has a checked file. */
  readonly #chunks: (Uint32Array | undefined)[] = [];

  set(entry: number, facts: FileFacts, nowSec: number): void {
    const index = Math.floor(entry / entriesPerChunk);
    const chunk = (this.#chunks[index] ??= new Uint32Array(entriesPerChunk * stampWords));
    const at = (entry % entriesPerChunk) * stampWords;
    chunk[at] = fingerprint(facts);
    chunk[at + 1] = nowSec;
  }

  clear(entry: number): void {
    this.#chunks[Math.floor(entry / entriesPerChunk)]?.fill(
      0,
      (entry % entriesPerChunk) * stampWords,
      (entry % entriesPerChunk) * stampWords + stampWords,
    );
  }

  /** Whether the file was found right after `sinceSec`, and has not been changed since. */
  isRight(entry: number, facts: FileFacts, sinceSec: number): boolean {
    const chunk = this.#chunks[Math.floor(entry / entriesPerChunk)];
    if (!chunk) return false;
    const at = (entry % entriesPerChunk) * stampWords;
    return chunk[at] === fingerprint(facts) && (chunk[at + 1] ?? 0) >= sinceSec;
  }

  /** Second of the last check; 0 if there was none. */
  checkedSec(entry: number): number {
    const chunk = this.#chunks[Math.floor(entry / entriesPerChunk)];
    return chunk?.[(entry % entriesPerChunk) * stampWords + 1] ?? 0;
  }
}

const words = new Float64Array(3);
const halves = new Uint32Array(words.buffer);

/** Never 0. FNV-1a over the words, with a final mix. */
export function fingerprint({ ino, ctimeMs, size }: FileFacts): number {
  words[0] = ino;
  words[1] = ctimeMs;
  words[2] = size;
  let hash = 0x811c9dc5;
  for (const half of halves) hash = Math.imul(hash ^ half, 0x01000193) ^ (hash >>> 15);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  return (hash ^ (hash >>> 13)) >>> 0 || 1;
}
