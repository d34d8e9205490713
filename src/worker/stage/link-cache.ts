/**
 * Files to hard-link inputs from: every recent input blob, once as a plain file and, if wanted, once as an executable
 * one, because the two need separate inodes (REAPI-72). Bounded; the least recently used go first.
 *
 * Y1 A file here has the bytes that its name says: verified when written, read-only, and never writable for an action.
 * Y2 After a reboot of the machine nothing here is trusted, because files are not synced. After a restart of the node,
 * everything is.
 * Y3 A file that was changed, cut or removed from outside is not given to an action: it is looked at, now and then, for
 * its size, time and mode, and fetched again.
 */
import { randomBytes } from "node:crypto";
import {
  closeSync,
  fchmodSync,
  futimesSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
  type Stats,
} from "node:fs";
import { copyFile, lstat, open, readdir, rm, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { digestSizeBytes, parseDigest, type Digest } from "#base/digest.ts";
import { Fault, isFault } from "#base/fault.ts";
import { digestOf } from "#blobs/hashing.ts";
import { canonical, verified } from "#blobs/sha256.ts";
import type { BlobStore } from "#blobs/store.ts";
import { Pace } from "#worker/visits/pace.ts";

export type LinkCacheOptions = { readonly folder: string; readonly bytesMax: number; readonly fetchesMax?: number };

type Kept = { readonly bytes: number; uses: number; checkedMs: number };

/** REAPI-82: the same time for all files, so that no action depends on it. */
const fixedTime = new Date(Date.UTC(2000, 0, 1));
const blockBytes = 4_096;
/** For so long a file that was looked at counts as unchanged: a look takes a few microseconds. */
export const checkedForMs = 1_000;

export class LinkCache {
  readonly #folder: string;
  readonly #bytesMax: number;
  readonly #fetchesMax: number;
  /** Least recently used first. */
  readonly #kept = new Map<string, Kept>();
  readonly #coming = new Map<string, Promise<void>>();
  #bytes = 0;
  readonly #pace = new Pace();

  private constructor({ folder, bytesMax, fetchesMax = 32 }: LinkCacheOptions) {
    this.#folder = folder;
    this.#bytesMax = bytesMax;
    this.#fetchesMax = fetchesMax;
  }

  static async open(options: LinkCacheOptions): Promise<LinkCache> {
    const cache = new LinkCache(options);
    await cache.#restore();
    return cache;
  }

  get bytes(): number {
    return this.#bytes;
  }

  path(digest: Digest, executable: boolean): string {
    return this.#path(keyOf(digest, executable));
  }

  /**
   * Keeps all of them here until the result is disposed. The store is asked only for blobs that are not here; the
   * caller must check itself that the tenant may read them.
   */
  async hold(wanted: readonly { digest: Digest; executable: boolean }[], blobs: BlobStore): Promise<Disposable> {
    const keys = new Map(wanted.map(({ digest, executable }) => [keyOf(digest, executable), digest]));
    const held: Kept[] = [];
    const release = (): void => {
      for (const kept of held.splice(0)) kept.uses -= 1;
    };
    try {
      const absent: [string, Digest][] = [];
      for (const [key, digest] of keys) {
        const kept = this.#take(key);
        if (kept) held.push(kept);
        else absent.push([key, digest]);
      }
      const queue = absent.values();
      const workers = Array.from({ length: Math.min(this.#fetchesMax, absent.length) }, async () => {
        for (const [key, digest] of queue) held.push(await this.#bring(key, digest, blobs));
      });
      await settledAll(workers);
      return { [Symbol.dispose]: release };
    } catch (error) {
      release();
      throw error;
    }
  }

  /** A link to such a file is not as it was made: the file here is looked at before it is given to anybody again. */
  doubt(files: Iterable<{ readonly digest: Digest; readonly executable: boolean }>): void {
    for (const { digest, executable } of files) {
      const kept = this.#kept.get(keyOf(digest, executable));
      if (kept) kept.checkedMs = -Infinity;
    }
  }

  /** Concurrent requests for one blob share one fetch. */
  async #bring(key: string, digest: Digest, blobs: BlobStore): Promise<Kept> {
    for (;;) {
      const kept = this.#take(key);
      if (kept) return kept;
      const coming = this.#coming.get(key);
      if (coming) {
        await coming.catch(() => {});
        continue;
      }
      const fetching = this.#fetch(key, digest, blobs).finally(() => this.#coming.delete(key));
      this.#coming.set(key, fetching);
      await fetching;
    }
  }

  async #fetch(key: string, digest: Digest, blobs: BlobStore): Promise<void> {
    const bytes = sizeOnDisk(digestSizeBytes(digest));
    this.#moveIntoLeaf(bytes);
    const temp = join(this.#folder, `.new-${randomBytes(8).toString("hex")}`);
    const ready = blobs.prompt?.bytes(canonical(digest));
    const other = otherKey(key);
    const twin = ready ? undefined : this.#take(other);
    try {
      if (ready) writeNow(digest, ready, temp, modeOf(key));
      else if (twin) await copyAs(this.#path(other), temp, modeOf(key));
      else await writeAsItComes(digest, blobs, temp, modeOf(key));
      renameSync(temp, this.#path(key));
    } catch (error) {
      await rm(temp, { force: true });
      throw error;
    } finally {
      if (twin) twin.uses -= 1;
    }
    this.#kept.set(key, { bytes, uses: 0, checkedMs: performance.now() });
    this.#bytes += bytes;
    if (this.#pace.isLong()) await this.#pace.rest();
  }

  #take(key: string): Kept | undefined {
    const kept = this.#kept.get(key);
    if (!kept) return undefined;
    this.#kept.delete(key);
    if (!this.#isUnchanged(key, kept)) {
      this.#bytes -= kept.bytes;
      rmSync(this.#path(key), { force: true });
      return undefined;
    }
    kept.uses += 1;
    this.#kept.set(key, kept);
    return kept;
  }

  /** Y3 */
  #isUnchanged(key: string, kept: Kept): boolean {
    const nowMs = performance.now();
    if (nowMs - kept.checkedMs < checkedForMs) return true;
    const stats = lstatSync(this.#path(key), { throwIfNoEntry: false });
    if (!stats || !isAsMade(stats, key)) return false;
    kept.checkedMs = nowMs;
    return true;
  }

  #moveIntoLeaf(bytes: number): void {
    if (bytes > this.#bytesMax) throw new Fault("exhausted", "keep input", { bytes, bytesMax: this.#bytesMax });
    for (const [key, kept] of this.#kept) {
      if (this.#bytes + bytes <= this.#bytesMax) return;
      if (kept.uses > 0) continue;
      this.#kept.delete(key);
      this.#bytes -= kept.bytes;
      // Existing hard links keep the file; only this name is removed.
      void unlink(this.#path(key)).catch(() => {});
    }
    if (this.#bytes + bytes > this.#bytesMax)
      throw new Fault("exhausted", "keep input", { why: "all cached inputs are in use", bytesMax: this.#bytesMax });
  }

  async #restore(): Promise<void> {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    const bootPath = join(this.#folder, ".boot");
    const boot = bootId();
    const isSame = boot !== "" && textOr(bootPath) === boot;
    for (const name of await readdir(this.#folder)) {
      if (name === ".boot") continue;
      const path = join(this.#folder, name);
      const size = digestSizeBytes(digestOfKey(name));
      if (!isSame || !isKey(name) || !isAsMade(await lstat(path), name)) await rm(path, { force: true });
      else {
        this.#kept.set(name, { bytes: sizeOnDisk(size), uses: 0, checkedMs: performance.now() });
        this.#bytes += sizeOnDisk(size);
      }
    }
    await writeFile(bootPath, boot);
    if (this.#bytes > this.#bytesMax) this.#moveIntoLeaf(0);
  }

  #path(key: string): string {
    return join(this.#folder, key);
  }
}

/** Waits until all have ended, then throws the first failure. */
async function settledAll(running: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(running)).find(({ status }) => status === "rejected");
  if (failed?.status === "rejected") throw failed.reason;
}

/** For small blobs in memory: asynchronous calls would cost four times as much. */
function writeNow(digest: Digest, bytes: Uint8Array, path: string, mode: number): void {
  const { fn = "sha256" } = parseDigest(digest) ?? {};
  if (digestOf(bytes, fn) !== canonical(digest)) throw damaged(digest);
  const fd = openSync(path, "wx", 0o600);
  try {
    for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at);
    futimesSync(fd, fixedTime, fixedTime);
    fchmodSync(fd, mode);
  } finally {
    closeSync(fd);
  }
}

async function writeAsItComes(digest: Digest, blobs: BlobStore, path: string, mode: number): Promise<void> {
  const name = canonical(digest);
  await using file = await open(path, "wx", 0o600);
  try {
    for await (const part of verified(name, blobs.read(name))) await file.writeFile(part);
  } catch (error) {
    throw isFault(error, "invalid") || isFault(error, "corrupt") ? damaged(name, error) : error;
  }
  await file.utimes(fixedTime, fixedTime);
  await file.chmod(mode);
}

async function copyAs(from: string, to: string, mode: number): Promise<void> {
  await copyFile(from, to);
  await using file = await open(to, "r+");
  await file.utimes(fixedTime, fixedTime);
  await file.chmod(mode);
}

/** As good as missing: the client is told so, and sends it again. */
const damaged = (digest: Digest, cause?: unknown): Fault =>
  new Fault("not-found", "keep input", { digest, why: "the copy that was read is damaged" }, cause);

/** A file that is writable, or that has another time, may have been changed, whatever its size. */
const isAsMade = ({ size, mode, mtimeMs }: Stats, key: string): boolean =>
  size === digestSizeBytes(digestOfKey(key)) && (mode & 0o7777) === modeOf(key) && mtimeMs === fixedTime.getTime();

/** A file that was linked from here, or copied; `isSpecial`: with a time or a mode of its own (REAPI-82). */
export type MadeFile = {
  readonly path: string;
  readonly digest: Digest;
  readonly executable: boolean;
  readonly isSpecial: boolean;
};

export function isFileAsMade({ path, digest, executable, isSpecial }: MadeFile): boolean {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (!stats?.isFile()) return false;
  if (isSpecial) return stats.size === digestSizeBytes(digest) && (stats.mode & 0o222) === 0;
  return isAsMade(stats, keyOf(digest, executable));
}

const modeOf = (key: string): number => (key.endsWith(".x") ? 0o555 : 0o444);

/** File names cannot contain a slash. */
const keyOf = (digest: Digest, executable: boolean): string =>
  `${canonical(digest).replace("/", "-")}${executable ? ".x" : ".f"}`;
const otherKey = (key: string): string => key.slice(0, -1) + (key.endsWith("x") ? "f" : "x");
const digestOfKey = (key: string): Digest => key.slice(0, -2).replace("-", "/");
const isKey = (name: string): boolean => /\.[xf]$/.test(name) && parseDigest(digestOfKey(name)) !== undefined;

const sizeOnDisk = (bytes: number): number => (Math.ceil(bytes / blockBytes) + 1) * blockBytes;

function textOr(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

const bootId = (): string => textOr("/proc/sys/kernel/random/boot_id");
