/**
 * Whom a machine passes a halt on to. All machines of a tenant at one node stand in a ring, by the hash of their names,
 * and each knows those 1, 2, 4, 8, ... places after it and the one before it: whichever machine hears of a halt first,
 * all others do within about log2(n) hops, and a few that are away do not cut the ring. Pure.
 */
import { hash } from "node:crypto";

const placesMax = 14;

export class Ring {
  readonly #names: { readonly name: string; readonly at: string }[] = [];

  get size(): number {
    return this.#names.length;
  }

  add(name: string): void {
    const at = hash("sha256", name);
    const index = this.#indexOf(at);
    if (this.#names[index]?.at !== at) this.#names.splice(index, 0, { name, at });
  }

  remove(name: string): void {
    const at = hash("sha256", name);
    const index = this.#indexOf(at);
    if (this.#names[index]?.at === at) this.#names.splice(index, 1);
  }

  neighboursOf(name: string): readonly string[] {
    const size = this.#names.length;
    const me = this.#indexOf(hash("sha256", name));
    const steps = [-1, ...Array.from({ length: placesMax }, (_, i) => 2 ** i)].filter((step) => step < size);
    const found = new Set(steps.map((step) => this.#names[(me + step + size) % size]?.name ?? name));
    found.delete(name);
    return [...found];
  }

  /** Where it is, or would be. */
  #indexOf(at: string): number {
    let [low, high] = [0, this.#names.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#names[middle]?.at ?? "") < at) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
