/** Reads streams from segments, wherever they were written. Readers of the same segment share one lookup. */
import { decodeSegment, type Segment, type Segments } from "./segments.ts";

export type Placed = Segment & { readonly n: number };

/** Segments that were read last stay in memory: many readers follow one stream. */
const keptBytesMax = 32 * 1024 * 1024;

export class SegmentReader {
  readonly #segments: Segments;
  /** By name, oldest use first. */
  readonly #kept = new Map<string, Placed>();
  #keptBytes = 0;
  readonly #pending = new Map<string, Promise<Placed | undefined>>();
  /** Of the streams that were read last: a segment that was read, so that the next one is found at once. */
  readonly #places = new Map<string, { readonly n: number; readonly from: number }>();

  constructor(segments: Segments) {
    this.#segments = segments;
  }

  /** Undefined: it is not there, or not yet. */
  async segment(folder: string, n: number): Promise<Placed | undefined> {
    const name = `${folder}/${n}`;
    const kept = this.#kept.get(name);
    if (kept) {
      this.#kept.delete(name);
      this.#kept.set(name, kept);
      return kept;
    }
    const pending = this.#pending.get(name) ?? this.#get(name, n);
    this.#pending.set(name, pending);
    try {
      const found = await pending;
      // Not if it was forgotten meanwhile.
      if (found && this.#pending.get(name) === pending) this.keep(name, found);
      return found;
    } finally {
      if (this.#pending.get(name) === pending) this.#pending.delete(name);
    }
  }

  async #get(name: string, n: number): Promise<Placed | undefined> {
    const encoded = await this.#segments.get(name);
    return encoded && { n, ...decodeSegment(encoded) };
  }

  keep(name: string, placed: Placed): void {
    this.#drop(name);
    this.#kept.set(name, placed);
    this.#keptBytes += placed.bytes.length;
    for (const oldest of this.#kept.keys()) {
      if (this.#keptBytes <= keptBytesMax) return;
      this.#drop(oldest);
    }
  }

  #drop(name: string): void {
    const placed = this.#kept.get(name);
    if (!placed) return;
    this.#kept.delete(name);
    this.#keptBytes -= placed.bytes.length;
  }

  forget(folder: string, count: number): void {
    for (let n = 0; n <= count; n += 1) {
      this.#drop(`${folder}/${n}`);
      this.#pending.delete(`${folder}/${n}`);
    }
    this.#places.delete(folder);
  }

  /** The number of the segment that has this offset, or that will have it. */
  async find(folder: string, offset: number): Promise<number> {
    if (offset === 0) return 0;
    const near = this.#places.get(folder);
    const begins = near && near.from <= offset ? near.n : 0;
    const n = await this.#after(folder, begins, offset);
    const found = await this.segment(folder, n);
    if (found) this.#place(folder, found);
    return n;
  }

  /** Doubles the step until a segment begins behind the offset or is missing, then halves it. */
  async #after(folder: string, begins: number, offset: number): Promise<number> {
    let low = begins;
    for (let step = 1; ; step *= 2) {
      const one = await this.segment(folder, low + step);
      if (one && one.from <= offset) {
        low += step;
        continue;
      }
      for (let high = low + step; high - low > 1;) {
        const middle = Math.floor((low + high) / 2);
        const there = await this.segment(folder, middle);
        if (there && there.from <= offset) low = middle;
        else high = middle;
      }
      const last = await this.segment(folder, low);
      return last && offset >= last.from + last.bytes.length ? low + 1 : low;
    }
  }

  /** The number of segments, and of bytes in them. */
  async end(folder: string): Promise<{ readonly count: number; readonly sizeBytes: number }> {
    const count = await this.#after(folder, 0, Number.MAX_SAFE_INTEGER);
    const last = count === 0 ? undefined : await this.segment(folder, count - 1);
    return last ? { count, sizeBytes: last.from + last.bytes.length } : { count: 0, sizeBytes: 0 };
  }

  #place(folder: string, { n, from }: Placed): void {
    this.#places.delete(folder);
    this.#places.set(folder, { n, from });
    for (const oldest of this.#places.keys()) {
      if (this.#places.size <= placesMax) return;
      this.#places.delete(oldest);
    }
  }
}

const placesMax = 1_000;
