/**
 * One reader of the feed: a position in each shard, and what follows it. It holds no items of its own, so a slow reader
 * costs no memory; one that falls behind what the node keeps is told to come back with its cursor.
 *
 * FR1 Every item that the filter wants and that follows the cursor is delivered, a shard's items in the order of its
 *     log. After a reconnection items may come again, those after the cursor that the reader named; none is left out.
 */
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import { parseJob, type ShardId } from "#base/ids.ts";
import type { Seq } from "#journal/journal.ts";
import type { FeedItem } from "#kernel/read/feed.ts";
import { decodeCursor, encodeCursor, type Position } from "./cursor.ts";
import { wants, type FeedFilter } from "./filter.ts";
import type { FeedHub } from "./hub.ts";
import { aheadOfLog, type ReplayedFeed } from "./replayed.ts";
import type { FeedBatch } from "./ring.ts";

export type ReaderPorts = {
  readonly clock: Clock;
  readonly hub: FeedHub;
  readonly replayed: ReplayedFeed;
  readonly cluster: () => { readonly clusterId: string; readonly shards: number };
};

/** Where to begin: after the cursor, with the oldest item there is, or with what happens from now on. */
export type FeedStart = "now" | "oldest" | { readonly cursor: string };

const roundItemsMax = 500;

export class FeedReader implements Disposable {
  readonly #ports: ReaderPorts;
  readonly #filter: FeedFilter;
  readonly #positions: Position[];
  /** A job's items are all in one shard. */
  readonly #only: ShardId | undefined;
  /** Shards in which it has caught up once: falling off the ring there means that it is too slow. */
  readonly #live = new Set<ShardId>();
  readonly #closed: () => void;
  #isOpen = true;
  #next = 0;

  private constructor(ports: ReaderPorts, filter: FeedFilter, positions: Position[], closed: () => void) {
    this.#ports = ports;
    this.#closed = closed;
    this.#filter = filter;
    this.#positions = positions;
    this.#only = filter.job === undefined ? undefined : parseJob(filter.job)?.shard;
  }

  static async open(
    ports: ReaderPorts,
    filter: FeedFilter,
    start: FeedStart,
    closed: () => void = () => {},
  ): Promise<FeedReader> {
    const { hub, cluster } = ports;
    const { clusterId, shards } = cluster();
    const given = typeof start === "object" ? decodeCursor(start.cursor, { clusterId, shards }) : undefined;
    await hub.join();
    try {
      await checkAhead(hub, given ?? []);
    } catch (error) {
      hub.leave();
      throw error;
    }
    const at = (shard: ShardId): Position =>
      given?.[shard] ?? { seq: start === "oldest" ? 0 : (hub.ring(shard)?.through ?? 0), skip: 0 };
    return new FeedReader(
      ports,
      filter,
      Array.from({ length: shards }, (_, shard) => at(shard)),
      closed,
    );
  }

  [Symbol.dispose](): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#ports.hub.leave();
    this.#closed();
  }

  get cursor(): string {
    return encodeCursor(this.#positions, this.#ports.cluster().clusterId);
  }

  get positions(): readonly Position[] {
    return this.#positions;
  }

  /** How many batches of the log it has not seen, in all shards. */
  get lag(): number {
    return this.#positions.reduce(
      (sum, { seq }, shard) => sum + Math.max(0, (this.#ports.hub.ring(shard)?.through ?? seq) - seq),
      0,
    );
  }

  /** For how long the oldest item that it has not seen has been there; what the filter leaves out counts, too. */
  lagMs(nowMs: number): number {
    return this.#positions.reduce((most, { seq }, shard) => {
      const at = this.#ports.hub.ring(shard)?.oldestAfter(seq);
      return at === undefined ? most : Math.max(most, nowMs - at);
    }, 0);
  }

  /**
   * The next items, of one shard or several, at most so many; none if there are none now. The cursor stands right after
   * them.
   */
  async take(itemsMax: number, signal: AbortSignal): Promise<readonly FeedItem[]> {
    const items: FeedItem[] = [];
    const { length } = this.#positions;
    for (let i = 0; i < length && items.length < itemsMax && !signal.aborted; i += 1) {
      const shard = this.#only ?? (this.#next + i) % length;
      await this.#takeShard(shard, items, itemsMax, signal);
      if (this.#only !== undefined) break;
    }
    this.#next = (this.#next + 1) % length;
    return items;
  }

  /** Waits until there may be more. */
  news(waitMs: number, signal: AbortSignal): Promise<void> {
    return this.#ports.hub.news(waitMs, signal);
  }

  async #takeShard(shard: ShardId, items: FeedItem[], itemsMax: number, signal: AbortSignal): Promise<void> {
    while (items.length < itemsMax) {
      const at = this.#positions[shard] as Position;
      const ring = this.#ports.hub.ring(shard);
      if (!ring || this.#ports.hub.isStopped)
        throw new Fault("unavailable", "read the event feed", { shard, why: "the node is stopping" });
      if (ring.through <= at.seq) return void this.#live.add(shard);
      const kept = ring.since(at.seq, roundItemsMax);
      if (!kept && this.#live.has(shard))
        throw new Fault("exhausted", "read the event feed", { why: "too slow: come back with the cursor", shard });
      const { batches, through } = kept ?? (await this.#ports.replayed.slice(shard, at.seq, ring.after, signal));
      if (!this.#deliver(shard, batches, through, items, itemsMax) || through === at.seq) return;
    }
  }

  /** False if the limit was reached in the middle: the position says where. */
  #deliver(shard: ShardId, batches: readonly FeedBatch[], through: Seq, items: FeedItem[], itemsMax: number): boolean {
    let { seq: doneSeq, skip } = this.#positions[shard] as Position;
    for (const batch of batches) {
      // A position inside a batch is one of the batch after `seq`.
      const from = batch.seq === doneSeq + 1 ? skip : 0;
      for (let i = from; i < batch.items.length; i += 1) {
        const item = batch.items[i] as FeedItem;
        if (!wants(this.#filter, item)) continue;
        if (items.length >= itemsMax) {
          this.#positions[shard] = { seq: batch.seq - 1, skip: i };
          return false;
        }
        items.push(item);
      }
      doneSeq = batch.seq;
      skip = 0;
    }
    this.#positions[shard] = { seq: Math.max(through, doneSeq), skip: 0 };
    return true;
  }
}

/** A cursor of another node may be ahead of what this node has heard, but never of the log. */
async function checkAhead(hub: FeedHub, positions: readonly Position[]): Promise<void> {
  for (const [shard, { seq }] of positions.entries()) {
    if (seq <= (hub.ring(shard)?.through ?? 0)) continue;
    const tail = await hub.tailOf(shard);
    if (seq > tail) throw new Fault("stale", "read the event feed", { shard, seq, tail, why: aheadOfLog });
  }
}
