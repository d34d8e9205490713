/** Blobs to be uploaded: known by digest, kept in memory while there is space, read again otherwise. */
import { closeSync, constants, fstatSync, openSync, read, readSync } from "node:fs";
import { open } from "node:fs/promises";
import { promisify } from "node:util";
import { digestText, type Digest, type DigestFunction } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { createHasher } from "#blobs/hashing.ts";
import type { BlobStore } from "#blobs/store.ts";

export type FoundFile = { readonly digest: Digest; readonly mode: number; readonly mtimeNs: bigint };

type Source = { readonly bytes: Buffer } | { readonly path: Buffer };

const smallBytes = 128 * 1024;
const chunkBytes = 256 * 1024;
/** Opening a pipe without a writer would block without these flags, and a link would be followed. */
const openFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;

export type UploadLimits = { readonly memoryBytesMax: number; readonly writesMax: number; readonly bytesMax: number };
export const uploadLimitsDefault: UploadLimits = { memoryBytesMax: 64 * 1024 * 1024, writesMax: 16, bytesMax: 2 ** 40 };

export class Uploads {
  readonly #fn: DigestFunction;
  readonly #limits: UploadLimits;
  readonly #sources = new Map<Digest, Source>();
  #heldBytes = 0;
  #bytes = 0;

  constructor(fn: DigestFunction, limits: Partial<UploadLimits> = {}) {
    this.#fn = fn;
    this.#limits = { ...uploadLimitsDefault, ...limits };
  }

  add(digest: Digest, bytes: Buffer): void {
    this.#sources.set(digest, { bytes });
    this.#count(bytes.length);
  }

  /** REAPI-87: hashes the file through one descriptor. Undefined if it is not a regular file. */
  async file(path: Buffer): Promise<FoundFile | undefined> {
    const fd = openSync(path, openFlags);
    try {
      const stats = fstatSync(fd, { bigint: true });
      if (!stats.isFile()) return undefined;
      this.#count(Number(stats.size));
      const digest = await this.#digest(fd, Number(stats.size), path);
      return { digest, mode: Number(stats.mode), mtimeNs: stats.mtimeNs };
    } finally {
      closeSync(fd);
    }
  }

  /** Writes the blobs that the store does not have; afterwards all are there. */
  async send(blobs: BlobStore): Promise<readonly Digest[]> {
    const missing = await blobs.missing([...this.#sources.keys()]);
    const queue = missing.values();
    const writers = Array.from({ length: Math.min(this.#limits.writesMax, missing.length) }, async () => {
      for (const digest of queue) {
        const source = this.#sources.get(digest);
        if (source) await blobs.write(digest, "bytes" in source ? source.bytes : chunks(source.path));
      }
    });
    const failed = (await Promise.allSettled(writers)).find(({ status }) => status === "rejected");
    if (failed?.status === "rejected") throw failed.reason;
    return [...this.#sources.keys()];
  }

  async #digest(fd: number, sizeBytes: number, path: Buffer): Promise<Digest> {
    if (sizeBytes <= smallBytes) {
      const bytes = readWhole(fd, sizeBytes);
      const digest = this.#named(bytes);
      const isRoom = this.#heldBytes + bytes.length <= this.#limits.memoryBytesMax;
      if (isRoom && !this.#sources.has(digest)) this.#heldBytes += bytes.length;
      this.#sources.set(digest, this.#sources.get(digest) ?? (isRoom ? { bytes } : { path }));
      return digest;
    }
    const hasher = createHasher(this.#fn);
    let size = 0;
    for await (const part of chunksOf(fd)) {
      size += part.length;
      hasher.update(part);
    }
    const digest = digestText(this.#fn, hasher.hex(), size);
    if (!this.#sources.has(digest)) this.#sources.set(digest, { path });
    return digest;
  }

  #named(bytes: Buffer): Digest {
    const hasher = createHasher(this.#fn);
    hasher.update(bytes);
    return digestText(this.#fn, hasher.hex(), bytes.length);
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    const { bytesMax } = this.#limits;
    if (this.#bytes > bytesMax) throw new Fault("exhausted", "collect outputs", { bytes: this.#bytes, bytesMax });
  }
}

function readWhole(fd: number, sizeBytes: number): Buffer {
  const bytes = Buffer.allocUnsafe(sizeBytes);
  let at = 0;
  while (at < sizeBytes) {
    const got = readSync(fd, bytes, at, sizeBytes - at, at);
    if (got === 0) break;
    at += got;
  }
  return bytes.subarray(0, at);
}

/** Of a file that no process writes to any more. */
async function* chunks(path: Buffer): AsyncGenerator<Uint8Array> {
  await using file = await open(path, openFlags);
  yield* chunksOf(file.fd);
}

const readAt = promisify(read);

/** A part is valid until the reader asks for the next one. */
async function* chunksOf(fd: number): AsyncGenerator<Uint8Array> {
  const buffer = Buffer.allocUnsafe(chunkBytes);
  for (let at = 0; ;) {
    const { bytesRead } = await readAt(fd, buffer, 0, chunkBytes, at);
    if (bytesRead === 0) return;
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}
