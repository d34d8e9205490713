/** The blobs of a memory store, whoever's they are: bytes once, and who has been given them (B5). */
import type { Clock } from "#base/clock.ts";
import type { Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";

export type Held = {
  readonly bytes: Uint8Array;
  readonly tenants: Set<string>;
  pinnedUntilMs: number;
  /** Since room was last made: it gets another turn. */
  wasUsed: boolean;
};

export class Shelf {
  readonly #clock: Clock;
  readonly #sizeBytesMax: number;
  // A Map keeps the order of insertion; putting a blob in again moves it to the young end. That is done for those in
  // use when room is made: at every look it would cost more than the look.
  readonly #held = new Map<Digest, Held>();
  /** Bytes have one size, so a name without it says as much. */
  readonly #byHash = new Map<string, Digest>();
  sizeBytes = 0;

  constructor(clock: Clock, sizeBytesMax: number) {
    this.#clock = clock;
    this.#sizeBytesMax = sizeBytesMax;
  }

  /** Only for who has been given it. */
  touch(digest: Digest, tenant: string): Held | undefined {
    const blob = this.#held.get(digest);
    if (!blob?.tenants.has(tenant)) return undefined;
    blob.wasUsed = true;
    return blob;
  }

  /** The bytes have been verified: whoever brings them has them, and may have them again. */
  add(digest: Digest, bytes: Uint8Array, tenant: string): void {
    const there = this.#held.get(digest);
    if (there) return void there.tenants.add(tenant);
    this.checkRoom(bytes.length);
    this.#makeRoom(bytes.length);
    const held = { bytes, tenants: new Set([tenant]), pinnedUntilMs: Number.NEGATIVE_INFINITY, wasUsed: false };
    this.#held.set(digest, held);
    this.#byHash.set(withoutSize(digest), digest);
    this.sizeBytes += bytes.length;
  }

  /** The name of the blob, of which all but the size is known. Only for who has been given it. */
  named(hash: string, tenant: string): Digest | undefined {
    const digest = this.#byHash.get(hash);
    return digest !== undefined && this.#held.get(digest)?.tenants.has(tenant) ? digest : undefined;
  }

  /** Throws "exhausted" when so much could not be taken in, whatever were let go. */
  checkRoom(neededBytes: number): void {
    let pinnedBytes = 0;
    if (this.sizeBytes + neededBytes > this.#sizeBytesMax)
      for (const blob of this.#held.values()) if (this.#isPinned(blob)) pinnedBytes += blob.bytes.length;
    if (pinnedBytes + neededBytes <= this.#sizeBytesMax) return;
    const facts = { neededBytes, usedBytes: this.sizeBytes, pinnedBytes, sizeBytesMax: this.#sizeBytesMax };
    throw new Fault("exhausted", "write blob", facts);
  }

  /** Oldest first, those that were used once all others are gone. checkRoom() has seen that it can be done. */
  #makeRoom(neededBytes: number): void {
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
