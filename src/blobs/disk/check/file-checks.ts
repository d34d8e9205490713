/**
 * Large blobs are read without hashing them each time: a file is trusted once this process has hashed it, until its
 * inode changes or a time has passed. Files are hashed in a thread of their own, in steps, so that uploads do not wait
 * for it and several files advance together; all that want one file checked share the check.
 */
import { statSync, type Stats } from "node:fs";
import { stat } from "node:fs/promises";
import { digestText, type DigestParts } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import { createHasher } from "#blobs/hashing.ts";
import { fileName, type FileName } from "#blobs/disk/blob-files.ts";
import type { Core } from "#blobs/disk/core.ts";
import { flags } from "#blobs/disk/table/table.ts";
import { HashThread } from "#blobs/disk/upload/file-hashing.ts";
import { plainBytes } from "#blobs/disk/upload/large-blobs.ts";
import { isBadSector } from "./bad-sector.ts";
import { fingerprint, FileStamps, type FileFacts } from "./file-stamps.ts";
import { copyOf, isStill } from "./same-copy.ts";

/** Hashed before others have their turn: some milliseconds. */
const stepBytes = 8 * 1024 * 1024;
/** Called between two steps with the number of bytes that were read: waits as long as the caller wants. */
export type BetweenSteps = (bytes: number) => Promise<void>;

/** "changed" if the copy was removed or replaced while it was checked: then nothing is known of the new one. */
export type Verdict = "right" | "wrong" | "changed";

export class FileChecks {
  readonly #core: Core;
  readonly #stamps = new FileStamps();
  readonly #thread = new HashThread();
  /** By copy, because the verdict on one copy says nothing about the next one. */
  readonly #underWay = new Map<string, Promise<Verdict>>();
  /** Since the process started. */
  checkedBytes = 0;

  constructor(core: Core) {
    this.#core = core;
  }

  /** Whether it was hashed lately and is unchanged. */
  isTrusted(entry: number, facts: FileFacts): boolean {
    const sinceSec = this.#core.nowSec() - Math.floor(this.#core.options.trustedMs / 1_000);
    return this.#stamps.isRight(entry, facts, sinceSec) && !this.#core.holdings.table.has(entry, flags.suspect);
  }

  /** The same, for callers that have not opened the file. */
  isTrustedNow(entry: number): boolean {
    try {
      return this.isTrusted(entry, statSync(this.#pathOf(entry)));
    } catch {
      return false;
    }
  }

  /** Whether a check found this very file right. */
  wasRight(entry: number, facts: FileFacts): boolean {
    return this.#stamps.isRight(entry, facts, 0);
  }

  /** Its bytes were verified while they were written. */
  trust(entry: number): void {
    try {
      this.#stamps.set(entry, statSync(this.#pathOf(entry)), this.#core.nowSec());
    } catch {
      // then it is checked when it is read
    }
  }

  checkedSec(entry: number): number {
    return this.#stamps.checkedSec(entry);
  }

  /** Whether the file has the digest. "wrong" if it is gone or cannot be read; throws if that cannot be known. */
  async check(entry: number, parts: DigestParts, between?: BetweenSteps): Promise<Verdict> {
    const { segment, offset } = copyOf(this.#core, entry);
    const copy = `${digestText(parts.fn, parts.hash, parts.sizeBytes)} ${segment} ${offset}`;
    let running = this.#underWay.get(copy);
    if (!running) {
      running = this.#check(entry, parts, between).finally(() => this.#underWay.delete(copy));
      this.#underWay.set(copy, running);
    }
    return await running;
  }

  async #check(entry: number, parts: DigestParts, between: BetweenSteps | undefined): Promise<Verdict> {
    const core = this.#core;
    const copy = copyOf(core, entry);
    const name = this.#nameOf(entry);
    const path = core.files.path(name);
    const before = await factsOf(path);
    const isRight = before !== undefined && (await this.#hasDigest(entry, parts, path, between));
    // An upload may have put its file in place and not recorded it yet.
    if (!isRight) await core.files.settled(name);
    const after = statSync(path, { throwIfNoEntry: false });
    const isSame = before && after ? fingerprint(before) === fingerprint(after) : before === after;
    if (!isSame || core.find(parts) !== entry) return "changed";
    if (!isRight || !after) return isStill(core, parts, copy) ? "wrong" : "changed";
    const { table } = core.holdings;
    this.#stamps.set(entry, after, core.nowSec());
    // It was just read from the disk, after the power failed.
    if (table.has(entry, flags.suspect)) table.setFlag(entry, flags.durable, true);
    table.setFlag(entry, flags.suspect, false);
    return "right";
  }

  async #hasDigest(entry: number, parts: DigestParts, path: string, between?: BetweenSteps): Promise<boolean> {
    const isFramed = this.#core.holdings.table.has(entry, flags.zstd);
    try {
      const hash = isFramed ? await this.#hashFrames(path, parts, between) : await this.#hashFile(path, parts, between);
      return hash === parts.hash;
    } catch (error) {
      if (isFault(error, "corrupt") || isGone(error) || isBadSector(error)) return false;
      throw error;
    }
  }

  async #hashFile(path: string, parts: DigestParts, between: BetweenSteps = () => Promise.resolve()): Promise<string> {
    if ((await factsOf(path))?.size !== parts.sizeBytes) return "";
    const hashing = this.#thread.begin(parts, path);
    try {
      let at = 0;
      for (; at + stepBytes < parts.sizeBytes; at += stepBytes) {
        await hashing.reach(at + stepBytes);
        this.checkedBytes += stepBytes;
        await between(stepBytes);
      }
      const hash = await hashing.finish(parts.sizeBytes);
      this.checkedBytes += parts.sizeBytes - at;
      await between(parts.sizeBytes - at);
      return hash;
    } finally {
      hashing.close();
    }
  }

  async #hashFrames(path: string, parts: DigestParts, between?: BetweenSteps): Promise<string> {
    const hasher = createHasher(parts.fn);
    for await (const piece of plainBytes(this.#core, path, parts.sizeBytes)) {
      hasher.update(piece);
      this.checkedBytes += piece.length;
      await between?.(piece.length);
    }
    return hasher.hex();
  }

  #nameOf(entry: number): FileName {
    const { table } = this.#core.holdings;
    return fileName(table.fn(entry), table.key(entry).slice());
  }

  #pathOf(entry: number): string {
    return this.#core.files.path(this.#nameOf(entry));
  }

  async close(): Promise<void> {
    await this.#thread.close();
    await Promise.allSettled(this.#underWay.values());
  }
}

/** Evicted while it was opened, here or in the thread. */
const isGone = (error: unknown): boolean =>
  (isFault(error) ? error.facts["errno"] : (error as NodeJS.ErrnoException).code) === "ENOENT";

async function factsOf(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
