/**
 * Files to make hard links to: every blob that was an input lately, once as a plain file and once, where wanted, as an
 * executable one, for the two need inodes of their own (REAPI-72). Bounded; what was not used the longest goes first.
 *
 * Y1 A file here has the bytes that its name says: verified when written, read-only, and never written by what runs.
 * Y2 After a crash of the machine nothing here is trusted: files are not synced. After one of the node, everything is.
 */
import { randomBytes } from "node:crypto";
import {
  closeSync,
  fchmodSync,
  futimesSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  writeSync,
  type Stats,
} from "node:fs";
import { copyFile, lstat, open, readdir, rm, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { digestSizeBytes, parseDigest, type Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { digestOf } from "#blobs/hashing.ts";
import { canonical, verified } from "#blobs/sha256.ts";
import type { BlobStore } from "#blobs/store.ts";
import { Pace } from "#worker/pace.ts";

export type LinkCacheOptions = { readonly folder: string; readonly bytesMax: number; readonly fetchesMax?: number };

type Kept = { readonly bytes: number; uses: number };

/** REAPI-82: the same for all, so that what reads it is not misled into making another output. */
const fixedTime = new Date(Date.UTC(2000, 0, 1));
const blockBytes = 4_096;

export class LinkCache {
  readonly #folder: string;
  readonly #bytesMax: number;
  readonly #fetchesMax: number;
  /** The least recently used first. */
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
   * Has all of them here until the answer is disposed of. The store is asked only for what is not here: whether the
   * caller may have it is for the caller to ask.
   */
  async hold(wanted: readonly { digest: Digest; executable: boolean }[], blobs: BlobStore): Promise<Disposable> {
    const keys = new Map(wanted.map(({ digest, executable }) => [keyOf(digest, executable), digest]));
    const held: string[] = [];
    const release = (): void => {
      for (const key of held.splice(0)) this.#release(key);
    };
    try {
      const absent: [string, Digest][] = [];
      for (const [key, digest] of keys) {
        if (this.#take(key)) held.push(key);
        else absent.push([key, digest]);
      }
      const queue = absent.values();
      const workers = Array.from({ length: Math.min(this.#fetchesMax, absent.length) }, async () => {
        for (const [key, digest] of queue) {
          await this.#bring(key, digest, blobs);
          held.push(key);
        }
      });
      await settledAll(workers);
      return { [Symbol.dispose]: release };
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Several that want the same one wait for one fetch. */
  async #bring(key: string, digest: Digest, blobs: BlobStore): Promise<void> {
    for (;;) {
      if (this.#take(key)) return;
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
    this.#makeRoom(bytes);
    const temp = join(this.#folder, `.new-${randomBytes(8).toString("hex")}`);
    const ready = blobs.prompt?.bytes(canonical(digest));
    try {
      const other = otherKey(key);
      if (ready) writeNow(digest, ready, temp, modeOf(key));
      else if (this.#take(other)) await this.#copy(other, temp, modeOf(key));
      else await writeAsItComes(digest, blobs, temp, modeOf(key));
      renameSync(temp, this.#path(key));
    } catch (error) {
      await rm(temp, { force: true });
      throw error;
    }
    this.#kept.set(key, { bytes, uses: 0 });
    this.#bytes += bytes;
    if (this.#pace.isLong()) await this.#pace.rest();
  }

  async #copy(other: string, temp: string, mode: number): Promise<void> {
    try {
      await copyFile(this.#path(other), temp);
      await using file = await open(temp, "r+");
      await file.utimes(fixedTime, fixedTime);
      await file.chmod(mode);
    } finally {
      this.#release(other);
    }
  }

  #take(key: string): boolean {
    const kept = this.#kept.get(key);
    if (!kept) return false;
    kept.uses += 1;
    this.#kept.delete(key);
    this.#kept.set(key, kept);
    return true;
  }

  #release(key: string): void {
    const kept = this.#kept.get(key);
    if (kept) kept.uses -= 1;
  }

  #makeRoom(bytes: number): void {
    if (bytes > this.#bytesMax) throw new Fault("exhausted", "keep input", { bytes, bytesMax: this.#bytesMax });
    for (const [key, kept] of this.#kept) {
      if (this.#bytes + bytes <= this.#bytesMax) return;
      if (kept.uses > 0) continue;
      this.#kept.delete(key);
      this.#bytes -= kept.bytes;
      // Whoever linked to it keeps the file; only the name goes.
      void unlink(this.#path(key)).catch(() => {});
    }
    if (this.#bytes + bytes > this.#bytesMax)
      throw new Fault("exhausted", "keep input", { why: "all that is kept is in use", bytesMax: this.#bytesMax });
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
        this.#kept.set(name, { bytes: sizeOnDisk(size), uses: 0 });
        this.#bytes += sizeOnDisk(size);
      }
    }
    await writeFile(bootPath, boot);
    if (this.#bytes > this.#bytesMax) this.#makeRoom(0);
  }

  #path(key: string): string {
    return join(this.#folder, key);
  }
}

/** All have ended, well or not; then the first failure is told. */
async function settledAll(running: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(running)).find(({ status }) => status === "rejected");
  if (failed?.status === "rejected") throw failed.reason;
}

/** Small ones, in memory: asynchronous calls would cost four times as much. */
function writeNow(digest: Digest, bytes: Uint8Array, path: string, mode: number): void {
  const { fn = "sha256" } = parseDigest(digest) ?? {};
  if (digestOf(bytes, fn) !== canonical(digest))
    throw new Fault("invalid", "keep input", { digest, why: "the bytes have another digest" });
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
  for await (const part of verified(name, blobs.read(name))) await file.writeFile(part);
  await file.utimes(fixedTime, fixedTime);
  await file.chmod(mode);
}

/** One that is open to writers may have had some, whatever its size. */
const isAsMade = ({ size, mode }: Stats, key: string): boolean =>
  size === digestSizeBytes(digestOfKey(key)) && (mode & 0o7777) === modeOf(key);

const modeOf = (key: string): number => (key.endsWith(".x") ? 0o555 : 0o444);

/** A slash is no part of a file's name. */
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
