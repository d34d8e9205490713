import type { Clock } from "#base/clock.ts";
import { digestSizeBytes, digestText, hashBytes, type Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { Shelf } from "./memory-shelf.ts";
import { canonical, checkedOffset, verified } from "#blobs/sha256.ts";
import type { BlobStore, Form, Prompt } from "#blobs/store.ts";
import { packed, unpacked } from "#blobs/zstd.ts";

export type MemoryBlobs = BlobStore & {
  /** Takes the blob away, as a janitor would; says no to what is not there or pinned (B2). */
  evict(digest: Digest): boolean;
  readonly sizeBytes: number;
};

export type MemoryBlobsOptions = {
  readonly clock: Clock;
  /** When it is full, what nobody asked for the longest makes room; with all of it pinned, writes are refused. */
  readonly sizeBytesMax: number;
};

/** Bytes in memory: for the simulator, for tests, and for a node that is to leave nothing behind. */
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

/** What one tenant sees of the shelf. */
export function blobsOf(shelf: Shelf, tenant: string): BlobStore {
  return {
    async missing(digests) {
      return digests.filter((digest) => !shelf.touch(canonical(digest), tenant));
    },
    async *read(digest, range, form) {
      const blob = shelf.touch(canonical(digest), tenant);
      if (!blob) throw new Fault("not-found", "read blob", { digest });
      const offset = checkedOffset(digest, range?.offset ?? 0);
      // A copy: a reader that scribbles must not change what the next one gets (B1).
      const end = range?.length === undefined ? undefined : offset + range.length;
      const bytes = Uint8Array.from(blob.bytes.subarray(offset, end));
      if (form === "zstd") yield* packed(only(bytes));
      else yield bytes;
    },
    async write(digest, source, form) {
      const name = canonical(digest);
      const parts: Uint8Array[] = [];
      // A part is its maker's again when the next one is asked for.
      for await (const part of verified(name, plain(source, name, form))) parts.push(Uint8Array.from(part));
      if (!shelf.touch(name, tenant)) shelf.add(name, Buffer.concat(parts), tenant);
    },
    async pin(digests, forMs) {
      // What is here by this very name has a proper one.
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
