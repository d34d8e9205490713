/**
 * When to look at what again: a time-bucketed index, scanned incrementally. It only says where to look; whether
 * something is really due is decided from the item itself. So an item may be looked at too early (a renewed claim stays
 * in its old bucket until that comes up), but never too late.
 */
import { Heap, type HeapNode } from "./heap.ts";

/**
 * Anything that can come due. `agendaAt` is the number of its bucket, -1 when it is in none. A bucket number rather
 * than a time, because V8 stores small integers inline and would allocate a heap number for each instant.
 */
export type AgendaItem = {
  agendaAt: number;
  /** Its index in the bucket. */
  agendaSlot: number;
};

/**
 * Arrays rather than sets: most items are removed soon after they were filed, and a set would be rebuilt over and over.
 */
type Bucket<T> = HeapNode & {
  readonly number: number;
  readonly items: (T | undefined)[];
  /** Index of the first item not taken yet. */
  head: number;
};

const fineMs = 100;
/**
 * Items further away than this go into coarse buckets; otherwise months of deadlines would mean millions of buckets.
 */
const farMs = 60_000;
const coarseMs = 20_000;

export class Agenda<T extends AgendaItem> {
  /** The time of bucket 0: when the first item was filed. */
  #firstMs: number | undefined;
  readonly #buckets = new Map<number, Bucket<T>>();
  readonly #order = new Heap<Bucket<T>>((a, b) => a.number < b.number);

  /** Files the item so that it is returned by `dueAtMs`; an item that is already filed earlier stays where it is. */
  file(item: T, dueAtMs: number, nowMs: number): void {
    const grain = dueAtMs - nowMs > farMs ? coarseMs : fineMs;
    // A coarse bucket is returned early and a fine one on time: its end is never before the item's due time.
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
    // Fill the gap with the last item.
    items[item.agendaSlot] = last;
    last.agendaSlot = item.agendaSlot;
  }

  /** Removes and returns the next item to look at; undefined when none is due by `nowMs`. */
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

  /** When the next item comes up; Infinity when nothing is filed. */
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
