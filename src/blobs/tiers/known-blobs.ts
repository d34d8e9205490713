/**
 * Remembers for a short while which blobs a tier has, to save requests. Only "present" is remembered, because "missing"
 * may change at any moment. A blob that came back with wrong bytes counts as missing until it is written again.
 */
import type { Clock } from "#base/clock.ts";
import type { Digest } from "#base/digest.ts";

export type KnownBlobsOptions = {
  readonly clock: Clock;
  /** Must be well below the time that the tier keeps blobs. */
  readonly forMs: number;
  readonly countMax: number;
};

export class KnownBlobs {
  readonly #options: KnownBlobsOptions;
  // A Map keeps insertion order: the first entry is the oldest.
  readonly #seenAtMs = new Map<Digest, number>();
  readonly #suspects = new Set<Digest>();

  constructor(options: KnownBlobsOptions) {
    this.#options = options;
  }

  has(digest: Digest): boolean {
    const atMs = this.#seenAtMs.get(digest);
    if (atMs === undefined) return false;
    if (this.#options.clock.monotonicMs() - atMs <= this.#options.forMs) return true;
    this.#seenAtMs.delete(digest);
    return false;
  }

  /** `atMs`: when the request was sent, on the monotonic clock. */
  seen(digest: Digest, atMs: number): void {
    this.#seenAtMs.delete(digest);
    this.#seenAtMs.set(digest, atMs);
    const [oldest] = this.#seenAtMs.keys();
    if (this.#seenAtMs.size > this.#options.countMax && oldest !== undefined) this.#seenAtMs.delete(oldest);
  }

  written(digest: Digest, atMs: number): void {
    this.#suspects.delete(digest);
    this.seen(digest, atMs);
  }

  forget(digest: Digest): void {
    this.#seenAtMs.delete(digest);
  }

  suspect(digest: Digest): void {
    this.forget(digest);
    const [first] = this.#suspects;
    if (this.#suspects.size >= suspectsMax && first !== undefined) this.#suspects.delete(first);
    this.#suspects.add(digest);
  }

  isSuspect(digest: Digest): boolean {
    return this.#suspects.has(digest);
  }
}

const suspectsMax = 10_000;
