/** A cache of closures of results: what a result names never changes, but whether it exists may. */
import type { Digest, DigestFunction } from "#base/digest.ts";
import type { Closure } from "./closure.ts";

/** Digests in all of them together; 40 bytes each. */
const digestsMax = 1_000_000;

export class Closures {
  // A Map keeps the order of insertion; inserting again moves an entry to the newest end.
  readonly #known = new Map<Digest, Closure>();
  #digests = 0;

  /** For a result read with that digest function; hardly any is ever read with two. */
  get(result: Digest, fn: DigestFunction): Closure | undefined {
    const closure = this.#known.get(result);
    return closure?.fn === fn ? closure : undefined;
  }

  keep(result: Digest, closure: Closure): void {
    if (this.#known.has(result) || closure.size > digestsMax / 10) return;
    this.#known.set(result, closure);
    this.#digests += closure.size + 1;
    for (const [oldest, { size }] of this.#known) {
      if (this.#digests <= digestsMax) break;
      this.#known.delete(oldest);
      this.#digests -= size + 1;
    }
  }
}
