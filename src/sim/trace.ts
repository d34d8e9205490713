/**
 * Everything that happened in a run, as lines: hashed, so that two runs of a seed can be compared, with the last lines
 * kept, so that a failure shows how it came about.
 */
export class Trace {
  #high = 0xdeadbeef;
  #low = 0x41c6ce57;
  #count = 0;
  readonly #kept: string[];
  readonly #keptMax: number;
  #sink: ((line: string) => void) | undefined;

  constructor(keptMax: number, sink?: (line: string) => void) {
    this.#keptMax = keptMax;
    this.#kept = [];
    this.#sink = sink;
  }

  line(text: string): void {
    let h = this.#high;
    let l = this.#low;
    for (let i = 0; i < text.length; i += 1) {
      const code = text.charCodeAt(i);
      h = Math.imul(h ^ code, 2654435761);
      l = Math.imul(l ^ code, 1597334677);
    }
    this.#high = Math.imul(h ^ (h >>> 16), 2246822507) ^ (l >>> 13);
    this.#low = Math.imul(l ^ (l >>> 16), 2246822507) ^ (h >>> 13);
    if (this.#keptMax > 0) this.#kept[this.#count % this.#keptMax] = text;
    this.#count += 1;
    this.#sink?.(text);
  }

  get lines(): number {
    return this.#count;
  }

  hash(): string {
    const hex = (n: number) => (n >>> 0).toString(16).padStart(8, "0");
    return `${hex(this.#high)}${hex(this.#low)}-${this.#count}`;
  }

  last(count: number): readonly string[] {
    const from = Math.max(0, this.#count - Math.min(count, this.#keptMax));
    return Array.from({ length: this.#count - from }, (_, i) => this.#kept[(from + i) % this.#keptMax] ?? "");
  }
}
