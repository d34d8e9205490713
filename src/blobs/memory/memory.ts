import type { Clock } from "#base/clock.ts";
import { digestSizeBytes, digestText, hashBytes, type Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { Shelf } from "./memory-shelf.ts";
import { canonical, checkedOffset, verified } from "#blobs/sha256.ts";
import type { BlobStore, Form, Prompt } from "#blobs/store.ts";
import { packed, unpacked } from "#blobs/zstd.ts";

export type MemoryBlobs = BlobStore & {
  /** Evicts the blob, as the janitor would. False if it is missing or pinned (B2). */
  evict(digest: Digest): boolean;
  readonly sizeBytes: number;
};

export type MemoryBlobsOptions = {
  readonly clock: Clock;
  /** When full, the store evicts the blob that was unused the longest; if all are pinned, it refuses writes. */
  readonly sizeBytesMax: number;
};

/** Blobs in memory: for the simulator, for tests, and for a node that must leave nothing on disk. */
export function createMemoryBlobs({ clock, sizeBytesMax }: MemoryBlobsOptions): MemoryBlobs {
  const shelf = new Shelf(clock, sizeBytesMax);
  return {
    get sizeBytes() {
      return shelf.sizeBytes;
    },
    ...blobsOf(shelf, "only"),
    evict: (digest) => shelf.evict(canonical(digest)),
  };
}

/** The blobs that one tenant may see. */
export function blobsOf(shelf: Shelf, tenant: string): BlobStore {
  return {
    async missing(digests) {
      return digests.filter((digest) => !shelf.touch(canonical(digest), tenant));
    },
    async *read(digest, range, form) {
      const blob = shelf.touch(canonical(digest), tenant);
      if (!blob) throw new Fault("not-found", "read blob", { digest });
      const offset = checkedOffset(digest, range?.offset ?? 0);
      // A copy, so that a reader that changes its bytes does not change the store's (B1).
      const end = range?.length === undefined ? undefined : offset + range.length;
      const bytes = Uint8Array.from(blob.bytes.subarray(offset, end));
      if (form === "zstd") yield* packed(only(bytes));
      else yield bytes;
    },
    async write(digest, source, form) {
      const name = canonical(digest);
      const parts: Uint8Array[] = [];
      // The source may reuse the memory of a part once the next one is requested, so copy it.
      for await (const part of verified(name, plain(source, name, form))) parts.push(Uint8Array.from(part));
      if (!shelf.touch(name, tenant)) shelf.add(name, Buffer.concat(parts), tenant);
    },
    async pin(digests, forMs) {
      // Nearly always the digest is in canonical form already: try it as it is first.
      const held = digests.map((digest) => shelf.touch(digest, tenant) ?? shelf.touch(canonical(digest), tenant));
      if (held.includes(undefined)) return { missing: digests.filter((_, i) => !held[i]) };
      shelf.pin(held, forMs);
      return { digests, pinnedForMs: forMs };
    },
    prompt: promptOf(shelf, tenant),
  };
}

const promptOf = (shelf: Shelf, tenant: string): Prompt => ({
  has(fn, hash, at, sizeBytes) {
    const hex = Buffer.from(hash.buffer, hash.byteOffset + at, hashBytes[fn]).toString("hex");
    return shelf.touch(digestText(fn, hex, sizeBytes), tenant) !== undefined;
  },
  sizeOf(fn, hash) {
    const digest = shelf.named(fn === "sha256" ? hash : `${fn}:${hash}`, tenant);
    return digest === undefined ? undefined : digestSizeBytes(digest);
  },
  bytes: (digest) => shelf.touch(canonical(digest), tenant)?.bytes,
});

const plain = (source: AsyncIterable<Uint8Array> | Uint8Array, digest: Digest, form: Form | undefined) =>
  form === "zstd" ? unpacked(source, digestSizeBytes(digest)) : source;

async function* only(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
