/** The blobs of a memory store for all tenants: each blob once, with the tenants that may see it (B5). */
import type { Clock } from "#base/clock.ts";
import type { Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";

export type Held = {
  readonly bytes: Uint8Array;
  readonly tenants: Set<string>;
  pinnedUntilMs: number;
  /** Set at every use, cleared by an eviction pass: such a blob is evicted only after all unused ones. */
  wasUsed: boolean;
};

export class Shelf {
  readonly #clock: Clock;
  readonly #sizeBytesMax: number;
  // A Map keeps insertion order, so inserting a blob again moves it to the young end. Only an eviction pass does that:
  // doing it at every lookup would cost more than the lookup.
  readonly #held = new Map<Digest, Held>();
  /** A hash has one size, so the hash alone names the blob. */
  readonly #byHash = new Map<string, Digest>();
  sizeBytes = 0;

  constructor(clock: Clock, sizeBytesMax: number) {
    this.#clock = clock;
    this.#sizeBytesMax = sizeBytesMax;
  }

  /** Finds the blob if the tenant may see it. */
  touch(digest: Digest, tenant: string): Held | undefined {
    const blob = this.#held.get(digest);
    if (!blob?.tenants.has(tenant)) return undefined;
    blob.wasUsed = true;
    return blob;
  }

  /** Takes verified bytes. A tenant that uploads a blob may read it from then on. */
  add(digest: Digest, bytes: Uint8Array, tenant: string): void {
    const there = this.#held.get(digest);
    if (there) return void there.tenants.add(tenant);
    this.checkSpace(bytes.length);
    this.#makeSpace(bytes.length);
    const held = { bytes, tenants: new Set([tenant]), pinnedUntilMs: Number.NEGATIVE_INFINITY, wasUsed: false };
    this.#held.set(digest, held);
    this.#byHash.set(withoutSize(digest), digest);
    this.sizeBytes += bytes.length;
  }

  /** Finds a digest by its hash alone, if the tenant may see the blob. */
  named(hash: string, tenant: string): Digest | undefined {
    const digest = this.#byHash.get(hash);
    return digest !== undefined && this.#held.get(digest)?.tenants.has(tenant) ? digest : undefined;
  }

  /** Throws "exhausted" if so many bytes would not fit even after evicting everything unpinned. */
  checkSpace(neededBytes: number): void {
    let pinnedBytes = 0;
    if (this.sizeBytes + neededBytes > this.#sizeBytesMax)
      for (const blob of this.#held.values()) if (this.#isPinned(blob)) pinnedBytes += blob.bytes.length;
    if (pinnedBytes + neededBytes <= this.#sizeBytesMax) return;
    const facts = { neededBytes, usedBytes: this.sizeBytes, pinnedBytes, sizeBytesMax: this.#sizeBytesMax };
    throw new Fault("exhausted", "write blob", facts);
  }

  /** Evicts unused blobs first, oldest first, then used ones. checkSpace() has verified that enough can be evicted. */
  #makeSpace(neededBytes: number): void {
    for (const [digest, blob] of this.#held) {
      if (this.sizeBytes + neededBytes <= this.#sizeBytesMax) return;
      if (blob.wasUsed) {
        blob.wasUsed = false;
        this.#held.delete(digest);
        this.#held.set(digest, blob);
      } else if (!this.#isPinned(blob)) this.#remove(digest, blob);
    }
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
    this.#byHash.delete(withoutSize(digest));
    this.sizeBytes -= blob.bytes.length;
  }
}

const withoutSize = (digest: Digest): string => digest.slice(0, digest.lastIndexOf("/"));
