/** A small seeded generator (sfc32), so that every run of the simulator can be repeated. Not for secrets. */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #d: number;

  constructor(seed: number | string) {
    const text = String(seed);
    this.#a = hash32(text, 0x9e3779b9);
    this.#b = hash32(text, 0x243f6a88);
    this.#c = hash32(text, 0xb7e15162);
    this.#d = 1;
    for (let i = 0; i < 12; i += 1) this.next32();
  }

  next32(): number {
    const t = (((this.#a + this.#b) | 0) + this.#d) | 0;
    this.#d = (this.#d + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (this.#c << 21) | (this.#c >>> 11);
    this.#c = (this.#c + t) | 0;
    return t >>> 0;
  }

  /** In [0, 1). */
  fraction(): number {
    return this.next32() / 4294967296;
  }

  /** An integer in [0, limit). */
  below(limit: number): number {
    return Math.floor(this.fraction() * limit);
  }

  /** An integer in [low, high], both included. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1);
  }

  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new RangeError("pick from an empty list");
    return item;
  }

  /** A separate generator, so that one part drawing more numbers does not shift another's. */
  fork(name: string): Random {
    return new Random(`${name}:${this.next32()}`);
  }
}

/** FNV-1a with a final mix: spreads similar strings far apart. Also used for deterministic jitter and placement. */
export function hash32(text: string, seed = 0): number {
  let h = (0x811c9dc5 ^ seed) >>> 0;
  for (let i = 0; i < text.length; i += 1) {
    h ^= text.charCodeAt(i);
    h = Math.imul(h, 0x01000193);
  }
  h ^= h >>> 16;
  h = Math.imul(h, 0x85ebca6b);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
