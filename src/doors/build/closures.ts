/** Closures of results that were read before: what a result names never changes, whether it is there may. */
import type { Digest, DigestFunction } from "#base/digest.ts";
import type { Closure } from "./closure.ts";

/** Digests in all of them together; 40 bytes each. */
const digestsMax = 1_000_000;

export class Closures {
  // A Map keeps the order of insertion; putting one in again moves it to the young end.
  readonly #known = new Map<string, Closure>();
  #digests = 0;

  get(result: Digest, fn: DigestFunction): Closure | undefined {
    return this.#known.get(`${fn} ${result}`);
  }

  keep(result: Digest, closure: Closure): void {
    const name = `${closure.fn} ${result}`;
    if (this.#known.has(name) || closure.size > digestsMax / 10) return;
    this.#known.set(name, closure);
    this.#digests += closure.size + 1;
    for (const [oldest, { size }] of this.#known) {
      if (this.#digests <= digestsMax) break;
      this.#known.delete(oldest);
      this.#digests -= size + 1;
    }
  }
}
