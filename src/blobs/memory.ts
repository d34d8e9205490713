import type { Clock } from "#base/clock.ts";
import type { Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { canonical, checkedOffset, verified } from "./sha256.ts";
import type { BlobStore } from "./store.ts";

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
    async missing(digests) {
      return digests.filter((digest) => !shelf.touch(canonical(digest)));
    },
    async *read(digest, range) {
      const blob = shelf.touch(canonical(digest));
      if (!blob) throw new Fault("not-found", "read blob", { digest });
      const offset = checkedOffset(digest, range?.offset ?? 0);
      // A copy: a reader that scribbles must not change what the next one gets (B1).
      yield Uint8Array.from(
        blob.bytes.subarray(offset, range?.length === undefined ? undefined : offset + range.length),
      );
    },
    async write(digest, source) {
      const name = canonical(digest);
      const parts: Uint8Array[] = [];
      for await (const part of verified(name, source)) parts.push(part);
      if (!shelf.touch(name)) shelf.add(name, Buffer.concat(parts));
    },
    async pin(digests, forMs) {
      // What is here by this very name has a proper one.
      const held = digests.map((digest) => shelf.touch(digest) ?? shelf.touch(canonical(digest)));
      if (held.includes(undefined)) return { missing: digests.filter((_, i) => !held[i]) };
      shelf.pin(held, forMs);
      return { digests, pinnedForMs: forMs };
    },
    evict: (digest) => shelf.evict(canonical(digest)),
  };
}

type Held = { readonly bytes: Uint8Array; pinnedUntilMs: number };

class Shelf {
  readonly #clock: Clock;
  readonly #sizeBytesMax: number;
  // A Map keeps the order of insertion; putting a blob in again moves it to the young end.
  readonly #held = new Map<Digest, Held>();
  sizeBytes = 0;

  constructor(clock: Clock, sizeBytesMax: number) {
    this.#clock = clock;
    this.#sizeBytesMax = sizeBytesMax;
  }

  touch(digest: Digest): Held | undefined {
    const blob = this.#held.get(digest);
    if (blob && this.#held.delete(digest)) this.#held.set(digest, blob);
    return blob;
  }

  add(digest: Digest, bytes: Uint8Array): void {
    for (const [other, blob] of this.#held) {
      if (this.sizeBytes + bytes.length <= this.#sizeBytesMax) break;
      if (!this.#isPinned(blob)) this.#remove(other, blob);
    }
    if (this.sizeBytes + bytes.length > this.#sizeBytesMax)
      throw new Fault("exhausted", "write blob", {
        neededBytes: bytes.length,
        usedBytes: this.sizeBytes,
        sizeBytesMax: this.#sizeBytesMax,
      });
    this.#held.set(digest, { bytes, pinnedUntilMs: Number.NEGATIVE_INFINITY });
    this.sizeBytes += bytes.length;
  }

  pin(blobs: readonly (Held | undefined)[], forMs: number): void {
    const untilMs = this.#clock.monotonicMs() + forMs;
    for (const blob of blobs) if (blob) blob.pinnedUntilMs = Math.max(blob.pinnedUntilMs, untilMs);
  }

  evict(digest: Digest): boolean {
    const blob = this.#held.get(digest);
    if (!blob || this.#isPinned(blob)) return false;
    this.#remove(digest, blob);
    return true;
  }

  #isPinned(blob: Held): boolean {
    return blob.pinnedUntilMs > this.#clock.monotonicMs();
  }

  #remove(digest: Digest, blob: Held): void {
    this.#held.delete(digest);
    this.sizeBytes -= blob.bytes.length;
  }
}
