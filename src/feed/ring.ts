/** The newest items of one shard, in order, as many as fit: the batches after `after` up to `through`, all of them. */
import type { Seq } from "#journal/journal.ts";
import type { FeedItem } from "#kernel/read/feed.ts";

/** What the feed says of one batch of the log; batches of which it says nothing are left out. */
export type FeedBatch = { readonly seq: Seq; readonly items: readonly FeedItem[] };

type Kept = { readonly batch: FeedBatch } & Sizes;

/** About what items take in memory, and at most as a message between nodes. */
type Sizes = { readonly bytes: number; readonly wireBytes: number };

/** Of an item, without the texts that others chose. */
const itemBytes = 450;

/** A text of others may be long, and there in every item; JSON writes a control character as six bytes. */
export function sizesOf(items: readonly FeedItem[]): Sizes {
  let texts = 0;
  for (const { tenant, door, name, reason = "", tags, stage, task, step } of items) {
    texts += tenant.length + door.length + name.length + reason.length + (stage ? stage.name.length : 0);
    if (task) texts += task.key.length + (task.executor?.length ?? 0);
    if (step) texts += step.name.length;
    if (tags) for (const tag in tags) texts += tag.length + (tags[tag]?.length ?? 0);
  }
  const bytes = items.length * itemBytes;
  return { bytes: bytes + texts, wireBytes: bytes + 6 * texts };
}

export type RingSlice = {
  readonly batches: readonly FeedBatch[];
  readonly through: Seq;
  /** There is more after it. */
  readonly isFull: boolean;
};

export class FeedRing {
  readonly #bytesMax: number;
  #kept: Kept[] = [];
  /** Entries before this are released. */
  #from = 0;
  #bytes = 0;
  #after: Seq;
  #through: Seq;

  constructor(after: Seq, bytesMax: number) {
    this.#after = after;
    this.#through = after;
    this.#bytesMax = bytesMax;
  }

  get after(): Seq {
    return this.#after;
  }

  get through(): Seq {
    return this.#through;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** The next batches, in order; `through` is the newest batch that is accounted for. False: they do not follow. */
  extend(after: Seq, through: Seq, batches: readonly FeedBatch[]): boolean {
    if (after > this.#through) return false;
    for (const batch of batches) if (batch.seq > this.#through) this.#push(batch);
    this.#through = Math.max(this.#through, through);
    return true;
  }

  /** Forgets everything: what follows begins after this batch. */
  reset(after: Seq): void {
    this.#kept = [];
    this.#from = 0;
    this.#bytes = 0;
    this.#after = after;
    this.#through = after;
  }

  /** The batches after this one, up to about so many items and bytes; undefined if they are no longer all here. */
  since(after: Seq, itemsMax: number, bytesMax = Number.POSITIVE_INFINITY): RingSlice | undefined {
    if (after < this.#after) return undefined;
    const batches: FeedBatch[] = [];
    let [items, bytes] = [0, 0];
    for (let i = this.#find(after); i < this.#kept.length; i += 1) {
      const { batch, wireBytes } = this.#kept[i] as Kept;
      bytes += wireBytes;
      if (items >= itemsMax || bytes > bytesMax) return { batches, through: batch.seq - 1, isFull: true };
      batches.push(batch);
      items += batch.items.length;
    }
    return { batches, through: this.#through, isFull: false };
  }

  /** When the oldest item that is kept after this batch happened, by kernel time; undefined if there is none. */
  oldestAfter(after: Seq): number | undefined {
    return this.#kept[this.#find(after)]?.batch.items[0]?.at;
  }

  #push(batch: FeedBatch): void {
    this.#through = batch.seq;
    if (batch.items.length === 0) return;
    const sizes = sizesOf(batch.items);
    this.#kept.push({ batch, ...sizes });
    this.#bytes += sizes.bytes;
    while (this.#bytes > this.#bytesMax && this.#from < this.#kept.length - 1) {
      const oldest = this.#kept[this.#from] as Kept;
      this.#bytes -= oldest.bytes;
      this.#after = oldest.batch.seq;
      this.#from += 1;
    }
    if (this.#from * 2 <= this.#kept.length) return;
    this.#kept.splice(0, this.#from);
    this.#from = 0;
  }

  /** The first entry after the batch; most readers are near the end. */
  #find(after: Seq): number {
    let low = this.#from;
    let high = this.#kept.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#kept[middle] as Kept).batch.seq <= after) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
