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
import { fileName } from "#blobs/disk/blob-files.ts";
import type { Core } from "#blobs/disk/core.ts";
import { flags } from "#blobs/disk/table/table.ts";
import { HashThread } from "#blobs/disk/upload/file-hashing.ts";
import { plainBytes } from "#blobs/disk/upload/large-blobs.ts";
import { isBadSector } from "./bad-sector.ts";
import { fingerprint, FileStamps, type FileFacts } from "./file-stamps.ts";

/** Hashed before others have their turn: some milliseconds. */
const stepBytes = 8 * 1024 * 1024;
/** A file that is replaced while it is checked is checked again. */
const triesMax = 3;

/** Called between two steps with the number of bytes that were read: waits as long as the caller wants. */
export type BetweenSteps = (bytes: number) => Promise<void>;

export class FileChecks {
  readonly #core: Core;
  readonly #stamps = new FileStamps();
  readonly #thread = new HashThread();
  readonly #underWay = new Map<string, Promise<boolean>>();
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

  /** Whether the file has the digest. False if it is gone or cannot be read; throws if that cannot be known. */
  async check(entry: number, parts: DigestParts, between?: BetweenSteps): Promise<boolean> {
    const digest = digestText(parts.fn, parts.hash, parts.sizeBytes);
    let running = this.#underWay.get(digest);
    if (!running) {
      running = this.#check(entry, parts, between).finally(() => this.#underWay.delete(digest));
      this.#underWay.set(digest, running);
    }
    return await running;
  }

  async #check(entry: number, parts: DigestParts, between: BetweenSteps | undefined): Promise<boolean> {
    const { holdings } = this.#core;
    const path = this.#pathOf(entry);
    for (let tries = 1; ; tries += 1) {
      const before = await factsOf(path);
      const isRight = before !== undefined && (await this.#hasDigest(entry, parts, path, between));
      const after = await factsOf(path);
      const isSame = before && after ? fingerprint(before) === fingerprint(after) : before === after;
      if (!isSame && tries < triesMax && this.#core.find(parts) === entry) continue;
      if (isRight && isSame && after && this.#core.find(parts) === entry) {
        this.#stamps.set(entry, after, this.#core.nowSec());
        // It was just read from the disk, after the power failed.
        if (holdings.table.has(entry, flags.suspect)) holdings.table.setFlag(entry, flags.durable, true);
        holdings.table.setFlag(entry, flags.suspect, false);
      }
      return isRight;
    }
  }

  async #hasDigest(entry: number, parts: DigestParts, path: string, between?: BetweenSteps): Promise<boolean> {
    const isFramed = this.#core.holdings.table.has(entry, flags.zstd);
    try {
      const hash = isFramed ? await this.#hashFrames(path, parts, between) : await this.#hashFile(path, parts, between);
      return hash === parts.hash;
    } catch (error) {
      if (isFault(error, "not-found") || isFault(error, "corrupt") || isBadSector(error)) return false;
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

  #pathOf(entry: number): string {
    const { table } = this.#core.holdings;
    return this.#core.files.path(fileName(table.fn(entry), table.key(entry).slice()));
  }

  async close(): Promise<void> {
    await this.#thread.close();
    await Promise.allSettled(this.#underWay.values());
  }
}

async function factsOf(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
