/**
 * A bucket as a store. An object's key has the function, hash and size, and bytes are verified in both directions.
 * Large blobs are sent in parts, each of which can be retried; the object appears when all parts are there and the
 * digest was verified (B1).
 */
import type { Clock } from "#base/clock.ts";
import type { Digest } from "#base/digest.ts";
import { Fault, isFault } from "#base/fault.ts";
import { partsOf } from "#blobs/hashing.ts";
import { canonical, verified } from "#blobs/sha256.ts";
import { readsFrom } from "#blobs/plain-reads.ts";
import type { BlobStore, Form, Range } from "#blobs/store.ts";
import type { RawPart } from "#blobs/tiers/ranges/part-reads.ts";
import { unpacked } from "#blobs/zstd.ts";
import { Gate } from "#blobs/tiers/gate.ts";
import { KnownBlobs } from "#blobs/tiers/known-blobs.ts";
import type { S3Client } from "./s3-client.ts";
import { verifiedRange } from "#blobs/tiers/verifying.ts";

export type S3BlobsOptions = {
  readonly clock: Clock;
  readonly client: S3Client;
  /** Prefix of every key, such as "millrace/tenant/". */
  readonly prefix: string;
  /** How long the bucket keeps an object after it was written; left out: forever. */
  readonly lifetimeMs?: number;
  /** How long an object that was seen is assumed to be there; at most a tenth of its lifetime. */
  readonly knownForMs?: number;
  readonly knownMax?: number;
  readonly partBytes?: number;
  readonly atOnceMax?: number;
};

const MiB = 1024 * 1024;
const partsMax = 10_000;

export function s3Blobs(options: S3BlobsOptions): BlobStore & { readonly raw: RawPart } {
  const { clock, client, lifetimeMs = Infinity } = options;
  const gate = new Gate(options.atOnceMax ?? 32);
  const writers = new Gate(8); // each holds one part in memory
  const known = new KnownBlobs({
    clock,
    forMs: Math.min(options.knownForMs ?? 600_000, lifetimeMs / 10),
    countMax: options.knownMax ?? 500_000,
  });
  const keyOf = (digest: Digest): string => {
    const { fn, hash, sizeBytes } = partsOf(digest);
    return `${options.prefix}cas/${fn}/${hash.slice(0, 2)}/${hash}-${sizeBytes}`;
  };

  /** Whether the object is there and stays for `forMs`; resets the age of an old one. */
  const isThere = async (digest: Digest, forMs = lifetimeMs / 4): Promise<boolean> => {
    const askedAtMs = clock.monotonicMs();
    const object = await client.head(keyOf(digest));
    if (!object || object.sizeBytes !== partsOf(digest).sizeBytes || known.isSuspect(digest)) return false;
    if (object.ageMs + forMs > lifetimeMs && !(await client.refresh(keyOf(digest)))) return false;
    known.seen(digest, askedAtMs);
    return true;
  };

  const missingOf = async (digests: readonly Digest[], forMs?: number): Promise<readonly Digest[]> => {
    const names = digests.map((digest) => canonical(digest));
    const unseen = [...new Set(names)].filter((name) => forMs !== undefined || !known.has(name));
    const found = await Promise.all(unseen.map((name) => gate.through(() => isThere(name, forMs))));
    const gone = new Set(unseen.filter((_, i) => !found[i]));
    return digests.filter((_, i) => gone.has(names[i] ?? ""));
  };

  const readPlain = async function* (digest: Digest, range: Range): AsyncGenerator<Uint8Array> {
    const got = await client.get(keyOf(digest));
    if (!got) {
      known.forget(digest);
      throw new Fault("not-found", "read blob", { digest });
    }
    try {
      yield* verifiedRange(digest, got.body, range);
    } catch (error) {
      if (isFault(error, "corrupt")) known.suspect(digest);
      throw error;
    }
  };

  return {
    async *raw(digest, offset, length) {
      const got = await client.get(keyOf(digest), offset, length);
      if (!got) throw new Fault("not-found", "read blob", { digest });
      yield* got.body;
    },
    missing: (digests) => missingOf(digests),
    read: readsFrom(readPlain),
    async write(digest, source, form) {
      const name = canonical(digest);
      const bytes = verified(name, plainFrom(source, name, form));
      if (known.has(name)) return await drained(bytes);
      const partBytes = partBytesFor(name, options.partBytes ?? 8 * MiB);
      const atMs = clock.monotonicMs();
      await writers.through(() => put(client, keyOf(name), name, bytes, partBytes));
      known.written(name, atMs);
    },
    async pin(digests, forMs) {
      if (forMs > lifetimeMs)
        throw new Fault("invalid", "pin", { forMs, lifetimeMs, why: "the bucket keeps objects for a shorter time" });
      const gone = await missingOf(digests, forMs);
      return gone.length > 0 ? { missing: gone } : { digests, pinnedForMs: forMs };
    },
  };
}

const partBytesFor = (digest: Digest, usual: number): number =>
  Math.max(usual, Math.ceil(partsOf(digest).sizeBytes / partsMax));

const plainFrom = (source: AsyncIterable<Uint8Array> | Uint8Array, digest: Digest, form: Form = "plain") =>
  form === "zstd" ? unpacked(source, partsOf(digest).sizeBytes) : source;

async function drained(parts: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const _ of parts);
}

async function put(
  client: S3Client,
  key: string,
  digest: Digest,
  bytes: AsyncIterable<Uint8Array>,
  partBytes: number,
): Promise<void> {
  const { fn, hash, sizeBytes } = partsOf(digest);
  if (sizeBytes <= partBytes) {
    const all = Buffer.allocUnsafe(sizeBytes);
    let at = 0;
    for await (const part of bytes) {
      all.set(part, at);
      at += part.length;
    }
    await client.put(key, all, {}, fn === "sha256" ? hash : undefined);
    return;
  }
  const uploadId = await client.beginParts(key);
  try {
    const etags: string[] = [];
    for await (const part of inPartsOf(partBytes, bytes))
      etags.push(await client.putPart(key, uploadId, etags.length + 1, part));
    await client.finishParts(key, uploadId, etags);
  } catch (error) {
    // otherwise the bucket's own rule for incomplete uploads removes them
    await client.abandonParts(key, uploadId).catch(() => {});
    throw error;
  }
}

async function* inPartsOf(size: number, bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let part = Buffer.allocUnsafe(size);
  let filled = 0;
  for await (const piece of bytes)
    for (let at = 0; at < piece.length;) {
      const taken = Math.min(piece.length - at, size - filled);
      part.set(piece.subarray(at, at + taken), filled);
      filled += taken;
      at += taken;
      if (filled < size) continue;
      yield part;
      part = Buffer.allocUnsafe(size);
      filled = 0;
    }
  if (filled > 0) yield part.subarray(0, filled);
}
