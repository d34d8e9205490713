/**
 * What a tier was seen to hold, for a short while: so that not every question about a blob becomes a request. Only what
 * is there is remembered: "not there" may be wrong a moment later, and its answer is never kept. What came back with
 * wrong bytes counts as not there until it was written anew.
 */
import type { Clock } from "#base/clock.ts";
import type { Digest } from "#base/digest.ts";

export type KnownBlobsOptions = {
  readonly clock: Clock;
  /** Well below the time that the tier keeps things for. */
  readonly forMs: number;
  readonly countMax: number;
};

export class KnownBlobs {
  readonly #options: KnownBlobsOptions;
  // A Map keeps the order of insertion: the first is the oldest.
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

  /** `atMs`: when the question was asked, on the monotonic clock. */
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
