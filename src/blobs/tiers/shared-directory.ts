/**
 * A folder that many nodes reach, such as a network mount: one file for each blob, in two levels of folders by hash. A
 * blob is written to a temporary file, verified, synced and then renamed, so that a name always means the whole blob
 * (B1, B3), also after a power failure. Nothing is evicted, which keeps every pin (B2).
 */
import { randomUUID } from "node:crypto";
import { mkdir, open, readdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import type { Digest } from "#base/digest.ts";
import { Fault, isFault } from "#base/fault.ts";
import { partsOf } from "#blobs/hashing.ts";
import { readsFrom } from "#blobs/plain-reads.ts";
import { canonical, verified } from "#blobs/sha256.ts";
import { DurableNames } from "#blobs/durable-names.ts";
import type { BlobStore, Range } from "#blobs/store.ts";
import type { RawPart } from "#blobs/tiers/ranges/part-reads.ts";
import { realSyncs, type Syncs } from "#blobs/syncs.ts";
import { unpacked } from "#blobs/zstd.ts";
import { Gate } from "./gate.ts";
import { KnownBlobs } from "./known-blobs.ts";
import { verifiedRange } from "./verifying.ts";

/** `folder` must exist: creating it where nothing is mounted would hide that all blobs are gone. */
export async function openSharedDirectory(
  folder: string,
  clock: Clock,
  below = "blobs",
  syncs: Syncs = realSyncs,
): Promise<BlobStore & { readonly raw: RawPart }> {
  const root = join(folder, below);
  const temporary = join(root, "tmp");
  const marker = join(folder, ".millrace");
  await writeFile(marker, "").catch((error: unknown) => {
    throw asFault(error, "open the shared folder");
  });
  await mkdir(temporary, { recursive: true });
  await removeOld(temporary);
  /** A missing file means a missing blob only while the folder is mounted. */
  const beMounted = (digest?: Digest): Promise<unknown> =>
    stat(marker).catch((error: unknown) => {
      throw asFault(error, "look for the shared folder", digest);
    });
  const gate = new Gate(32);
  const names = new DurableNames(folder, syncs);
  const known = new KnownBlobs({ clock, forMs: knownForMs, countMax: knownMax });

  const pathOf = (digest: Digest): string => {
    const { fn, hash, sizeBytes } = partsOf(digest);
    return join(root, fn, hash.slice(0, 2), hash.slice(2, 4), `${hash}-${sizeBytes}`);
  };
  const isThere = async (digest: Digest): Promise<boolean> => {
    const askedAtMs = clock.monotonicMs();
    try {
      const { size } = await stat(pathOf(digest));
      if (size !== partsOf(digest).sizeBytes || known.isSuspect(digest)) return false;
      known.seen(digest, askedAtMs);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw asFault(error, "look for blob", digest);
      await beMounted(digest);
      return false;
    }
  };
  const missing = async (digests: readonly Digest[]): Promise<readonly Digest[]> => {
    const gone = new Set<Digest>();
    const look = async (name: Digest): Promise<void> => {
      if (!(await gate.through(() => isThere(name)))) gone.add(name);
    };
    const wanted = digests.map((digest) => canonical(digest));
    const unseen = wanted.filter((name) => !known.has(name));
    if (unseen.length < wanted.length) await beMounted();
    await Promise.all(unseen.map(look));
    return gone.size === 0 ? [] : digests.filter((_, i) => gone.has(wanted[i] ?? ""));
  };

  const readPlain = async function* (digest: Digest, range: Range): AsyncGenerator<Uint8Array> {
    try {
      yield* verifiedRange(digest, slices(pathOf(digest), digest), range);
    } catch (error) {
      if (isFault(error, "corrupt")) known.suspect(digest);
      else known.forget(digest);
      if (isFault(error, "not-found")) await beMounted(digest);
      throw error;
    }
  };

  return {
    async *raw(digest, offset, length) {
      yield* slices(pathOf(digest), digest, offset, length);
    },
    missing,
    read: readsFrom(readPlain),
    async write(digest, source, form) {
      const name = canonical(digest);
      const bytes = verified(name, form === "zstd" ? unpacked(source, partsOf(name).sizeBytes) : source);
      if (await isThere(name)) {
        for await (const _ of bytes);
        return;
      }
      const path = pathOf(name);
      const partial = join(temporary, randomUUID());
      const writtenAtMs = clock.monotonicMs();
      try {
        await writeDurably(partial, bytes, syncs);
        await names.give(partial, path);
        known.written(name, writtenAtMs);
      } catch (error) {
        await rm(partial, { force: true }).catch(() => {});
        throw asFault(error, "write blob", name);
      }
    },
    async pin(digests, forMs) {
      const gone = await missing(digests);
      return gone.length > 0 ? { missing: gone } : { digests, pinnedForMs: forMs };
    },
  };
}

/** Blobs are only ever removed by hand. One lookup is cheap, but an action has ten thousand inputs. */
const knownForMs = 60_000;
const knownMax = 500_000;

const sliceBytes = 256 * 1024;

/** As a whole with one byte more than the size, so that a file that is too long is noticed without another call. */
async function* slices(
  path: string,
  digest: Digest,
  offset = 0,
  wanted = partsOf(digest).sizeBytes + 1,
): AsyncGenerator<Uint8Array> {
  const file = await open(path, "r").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") throw new Fault("not-found", "read blob", { digest });
    throw asFault(error, "read blob", digest);
  });
  try {
    for (let at = offset; at < offset + wanted;) {
      const length = Math.min(sliceBytes, offset + wanted - at);
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(length), 0, length, at);
      if (bytesRead === 0) return;
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } catch (error) {
    throw asFault(error, "read blob", digest);
  } finally {
    await file.close();
  }
}

const oldMs = 24 * 3_600_000;

/** Old temporary files are leftovers of crashes; another node may still be writing a young one. */
async function removeOld(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const ageMs = await stat(path).then(
      ({ mtimeMs }) => Date.now() - mtimeMs,
      () => 0,
    );
    if (ageMs > oldMs) await rm(path, { force: true });
  }
}

async function writeDurably(path: string, parts: AsyncIterable<Uint8Array>, syncs: Syncs): Promise<void> {
  await using file = await open(path, "wx", 0o600);
  for await (const part of parts) await file.writeFile(part);
  await syncs.file(file.fd, path);
}

function asFault(error: unknown, doing: string, digest?: Digest): Fault {
  if (error instanceof Fault) return error;
  const errno = (error as NodeJS.ErrnoException).code;
  const isFull = errno === "ENOSPC" || errno === "EDQUOT";
  return new Fault(isFull ? "exhausted" : "unavailable", doing, { digest, errno }, error);
}
