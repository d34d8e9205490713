/**
 * The decoder's dynamic table (RFC 7541 section 2.3.2) as a ring: neither an insertion nor an eviction moves entries.
 * The ring grows with the number of fields, never beyond what the size limit allows.
 */
import type { HeaderField } from "./header-field.ts";

export class DynamicTable {
  #ring: (HeaderField | undefined)[] = [];
  #mask = -1;
  /** Where the next field goes; the newest is just before it. */
  #head = 0;
  #count = 0;
  #size = 0;
  #sizeMax: number;

  constructor(sizeMax: number) {
    this.#sizeMax = sizeMax;
  }

  get count(): number {
    return this.#count;
  }

  get size(): number {
    return this.#size;
  }

  get sizeMax(): number {
    return this.#sizeMax;
  }

  /** The newest field is 0. The caller has checked `count`. */
  at(index: number): HeaderField {
    return this.#ring[(this.#head - 1 - index) & this.#mask] as HeaderField;
  }

  /** A field larger than the table empties it, and that is not an error (RFC 7541 section 4.4). */
  add(field: HeaderField, size: number): void {
    this.#evictTo(this.#sizeMax - size);
    if (size > this.#sizeMax) return;
    if (this.#count > this.#mask) this.#grow();
    this.#ring[this.#head] = field;
    this.#head = (this.#head + 1) & this.#mask;
    this.#count += 1;
    this.#size += size;
  }

  resize(sizeMax: number): void {
    this.#sizeMax = sizeMax;
    this.#evictTo(sizeMax);
  }

  #evictTo(size: number): void {
    while (this.#count > 0 && this.#size > size) {
      const oldest = (this.#head - this.#count) & this.#mask;
      this.#size -= (this.#ring[oldest] as HeaderField).size;
      this.#ring[oldest] = undefined;
      this.#count -= 1;
    }
  }

  #grow(): void {
    const kept = Array.from({ length: this.#count }, (_, index) => this.at(this.#count - 1 - index));
    const capacity = Math.max(8, this.#ring.length * 2);
    this.#ring = [...kept, ...Array.from({ length: capacity - kept.length }, () => undefined)];
    this.#mask = capacity - 1;
    this.#head = kept.length;
  }
}
