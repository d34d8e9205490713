/**
 * When to look at what again: a time-bucketed index, scanned incrementally. It only says where to look; whether
 * something is really due is decided from the item itself, so an item may be looked at too early (a claim that was
 * renewed stays in its old bucket until that comes up) and never too late.
 */
import { Heap, type HeapNode } from "./heap.ts";

/**
 * Anything that can come due. `agendaAt` is the bucket that it lies in, -1 when it lies in none. Buckets are numbered
 * rather than timed: a small number lies in the thing itself, an instant would cost it a number of its own on the heap.
 */
export type AgendaItem = {
  agendaAt: number;
  /** Its place in the bucket. */
  agendaSlot: number;
};

/** Lists rather than sets: whatever is filed is dropped again soon, and a set would be made anew over and over. */
type Bucket<T> = HeapNode & {
  readonly number: number;
  readonly items: (T | undefined)[];
  /** The first that was not taken yet. */
  head: number;
};

const fineMs = 100;
/** What is further away than this is filed coarsely, or months of deadlines would mean millions of buckets. */
const farMs = 60_000;
const coarseMs = 20_000;

export class Agenda<T extends AgendaItem> {
  /** The time of bucket 0: when the first thing was filed. */
  #firstMs: number | undefined;
  readonly #buckets = new Map<number, Bucket<T>>();
  readonly #order = new Heap<Bucket<T>>((a, b) => a.number < b.number);

  /** Files the item so that it is looked at by `dueAtMs`; one already filed earlier stays where it is. */
  file(item: T, dueAtMs: number, nowMs: number): void {
    const grain = dueAtMs - nowMs > farMs ? coarseMs : fineMs;
    // A coarse bucket comes up early, a fine one on time: its end is never before the item's due time.
    const atMs = grain === coarseMs ? Math.floor(dueAtMs / coarseMs) * coarseMs : Math.ceil(dueAtMs / fineMs) * fineMs;
    if (this.#firstMs === undefined) this.#firstMs = Math.floor(nowMs / fineMs) * fineMs;
    const number = Math.max(0, (atMs - this.#firstMs) / fineMs);
    if (item.agendaAt !== -1) {
      if (item.agendaAt <= number) return;
      this.drop(item);
    }
    let bucket = this.#buckets.get(number);
    if (!bucket) {
      bucket = { number, items: [], head: 0, heapAt: -1 };
      this.#buckets.set(number, bucket);
      this.#order.push(bucket);
    }
    item.agendaAt = number;
    item.agendaSlot = bucket.items.push(item) - 1;
  }

  drop(item: T): void {
    if (item.agendaAt === -1) return;
    const items = this.#buckets.get(item.agendaAt)?.items;
    item.agendaAt = -1;
    const last = items?.pop();
    if (!items || !last || last === item) return;
    // The last one takes its place.
    items[item.agendaSlot] = last;
    last.agendaSlot = item.agendaSlot;
  }

  /** The next item to look at, taken out; undefined when nothing comes up until `nowMs`. */
  take(nowMs: number): T | undefined {
    for (;;) {
      const bucket = this.#order.top();
      if (!bucket || this.#timeOf(bucket) > nowMs) return undefined;
      const item = bucket.items[bucket.head];
      if (item) {
        bucket.items[bucket.head] = undefined;
        bucket.head += 1;
        item.agendaAt = -1;
        return item;
      }
      this.#order.remove(bucket);
      this.#buckets.delete(bucket.number);
    }
  }

  /** When there will be something to look at; Infinity when nothing is filed. */
  nextAtMs(): number {
    for (;;) {
      const bucket = this.#order.top();
      if (!bucket) return Number.POSITIVE_INFINITY;
      if (bucket.items.length > bucket.head) return this.#timeOf(bucket);
      this.#order.remove(bucket);
      this.#buckets.delete(bucket.number);
    }
  }

  /** When the item comes up; Infinity when it is not filed. */
  filedAtMs(item: T): number {
    const bucket = this.#buckets.get(item.agendaAt);
    return bucket?.items[item.agendaSlot] === item ? this.#timeOf(bucket) : Number.POSITIVE_INFINITY;
  }

  #timeOf(bucket: Bucket<T>): number {
    return (this.#firstMs ?? 0) + bucket.number * fineMs;
  }
}
