/**
 * Results of token verification, by the token's SHA-256. Limited: when it is full, the least recently used entry goes
 * first.
 */
import type { Clock } from "#base/clock.ts";
import { stillCounts, type Identified } from "./identified.ts";

export class VerifiedCache {
  readonly #entriesMax: number;
  readonly #entries = new Map<string, Identified & { readonly ok: true }>();

  constructor(entriesMax: number) {
    this.#entriesMax = entriesMax;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(sha256: string, clock: Pick<Clock, "wallMs" | "monotonicMs">): Identified | undefined {
    const entry = this.#entries.get(sha256);
    if (!entry) return undefined;
    this.#entries.delete(sha256);
    if (!stillCounts(entry, clock)) return undefined;
    this.#entries.set(sha256, entry); // a map keeps its insertion order: now it is the newest
    return entry;
  }

  put(sha256: string, entry: Identified & { readonly ok: true }): void {
    this.#entries.delete(sha256);
    this.#entries.set(sha256, entry);
    if (this.#entries.size <= this.#entriesMax) return;
    for (const oldest of this.#entries.keys()) {
      this.#entries.delete(oldest);
      return;
    }
  }

  clear(): void {
    this.#entries.clear();
  }
}
