/**
 * The feed of batches that no owner keeps in memory any more: their events are read from the archive and the log and
 * applied to the state from which they were decided, so that the items are the same as the owner's were.
 *
 * Reading begins at the nearest snapshot (`base.ts`), and the state is kept for a while: the next page begins where the
 * last one ended.
 */
import { Fault, isFault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { Journal, Seq } from "#journal/journal.ts";
import { apply } from "#kernel/apply/apply.ts";
import type { State } from "#kernel/model/state.ts";
import { feedOf, type FeedItem } from "#kernel/read/feed.ts";
import { decodeEvents } from "#shard/codec/codec.ts";
import { readLog } from "#shard/history/log-reader.ts";
import { basesOf, restoredFrom, type BasePorts } from "./base.ts";
import type { FeedBatch } from "./ring.ts";

export type ReplayedPorts = BasePorts & {
  readonly journal: Pick<Journal, "segments" | "read" | "tail">;
  readonly settings?: Partial<ReplayedSettings>;
};

export type ReplayedSettings = {
  /** States in memory at once: each is as large as its shard. */
  readonly statesMax: number;
  /** Readers that wait for one of them. */
  readonly waitingMax: number;
  /** How long a state is kept for the next page. */
  readonly keepMs: number;
  readonly sliceItemsMax: number;
};

export const replayedDefaults: ReplayedSettings = {
  statesMax: 3,
  waitingMax: 200,
  keepMs: 20_000,
  sliceItemsMax: 1_000,
};

type Kept = { readonly state: State; seq: Seq; isBusy: boolean; usedMono: number };

export type Slice = { readonly batches: readonly FeedBatch[]; readonly through: Seq; readonly isTail: boolean };

/** After about this much log the event loop gets a turn. */
const turnBytes = 256 * 1024;

export class ReplayedFeed {
  readonly #ports: ReplayedPorts;
  readonly #settings: ReplayedSettings;
  readonly #kept = new Map<ShardId, Kept[]>();
  readonly #waiting: (() => void)[] = [];
  #states = 0;
  /** Slices read and batches applied, for metrics and tests. */
  readonly counts = { reads: 0, batches: 0 };

  constructor(ports: ReplayedPorts) {
    this.#ports = ports;
    this.#settings = { ...replayedDefaults, ...ports.settings };
  }

  /** The next batches after this one, up to `until` or the log's end, and about so many items. */
  async slice(shard: ShardId, after: Seq, until = Number.POSITIVE_INFINITY, signal?: AbortSignal): Promise<Slice> {
    const { seq: tailSeq } = await this.#ports.journal.tail(shard);
    const end = Math.min(until, tailSeq);
    if (after > tailSeq)
      throw new Fault("stale", "read the event feed", { shard, after, tail: tailSeq, why: aheadOfLog });
    if (after >= end) return { batches: [], through: after, isTail: after >= tailSeq };
    this.counts.reads += 1;
    const kept = await this.#take(shard, after, signal);
    try {
      const read = await this.#read(kept, after, end, signal);
      this.#giveBack(kept);
      return { ...read, isTail: read.through >= tailSeq };
    } catch (error) {
      this.#drop(kept); // it may have stopped half-way through a batch
      throw error;
    }
  }

  async #read(kept: Kept, after: Seq, end: Seq, signal?: AbortSignal): Promise<Omit<Slice, "isTail">> {
    const { state } = kept;
    const { shard } = state;
    const batches: FeedBatch[] = [];
    let [bytes, count] = [0, 0];
    for await (const { seq, payload } of readLog(this.#ports, shard, { from: kept.seq + 1, tailSeq: end })) {
      signal?.throwIfAborted();
      const items: FeedItem[] = [];
      replay(state, seq, payload, seq > after ? items : undefined);
      kept.seq = seq;
      this.counts.batches += 1;
      if (items.length > 0) batches.push({ seq, items });
      count += items.length;
      if (count >= this.#settings.sliceItemsMax) break;
      bytes += payload.length;
      if (bytes < turnBytes) continue;
      bytes = 0;
      await this.#ports.clock.sleep(0, signal);
    }
    return { batches, through: kept.seq };
  }

  /** A state at or before the batch: one in memory, unless a snapshot between it and the batch saves work. */
  async #take(shard: ShardId, after: Seq, signal?: AbortSignal): Promise<Kept> {
    const next = this.#idle(shard, after, after); // the page before ended here
    if (next) return next;
    const bases = await basesOf(this.#ports, shard, after);
    const near = this.#idle(shard, bases[0]?.seq ?? 0, after);
    if (near) return near;
    await this.#room(signal);
    try {
      const restored = await restoredFrom(this.#ports, shard, bases);
      const made: Kept = { ...restored, isBusy: true, usedMono: this.#ports.clock.monotonicMs() };
      this.#kept.set(shard, [...(this.#kept.get(shard) ?? []), made]);
      return made;
    } catch (error) {
      this.#free();
      throw error;
    }
  }

  /** The newest state in memory between these batches that is not in use; it is from now on. */
  #idle(shard: ShardId, from: Seq, after: Seq): Kept | undefined {
    const near = (this.#kept.get(shard) ?? []).filter(({ seq, isBusy }) => !isBusy && seq <= after);
    const newest = near.toSorted((a, b) => b.seq - a.seq)[0];
    if (!newest || newest.seq < from) return undefined;
    newest.isBusy = true;
    return newest;
  }

  async #room(signal?: AbortSignal): Promise<void> {
    while (this.#states >= this.#settings.statesMax) {
      if (this.#evict(Number.POSITIVE_INFINITY)) continue;
      if (this.#waiting.length >= this.#settings.waitingMax)
        throw new Fault("exhausted", "read the event feed", { why: "too many readers are far behind; try again soon" });
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
      signal?.throwIfAborted();
    }
    this.#states += 1;
  }

  /** Drops the state that was not used for longest, if it was not used since. */
  #evict(beforeMono: number): boolean {
    const idle = [...this.#kept.values()].flat().filter(({ isBusy, usedMono }) => !isBusy && usedMono <= beforeMono);
    const oldest = idle.sort((a, b) => a.usedMono - b.usedMono)[0];
    if (oldest) this.#drop(oldest);
    return oldest !== undefined;
  }

  #drop(gone: Kept): void {
    const { shard } = gone.state;
    const left = (this.#kept.get(shard) ?? []).filter((kept) => kept !== gone);
    if (left.length > 0) this.#kept.set(shard, left);
    else this.#kept.delete(shard);
    this.#free();
  }

  #free(): void {
    this.#states -= 1;
    this.#waiting.shift()?.();
  }

  #giveBack(kept: Kept): void {
    const { clock } = this.#ports;
    kept.isBusy = false;
    kept.usedMono = clock.monotonicMs();
    const { usedMono } = kept;
    if (this.#waiting.length > 0) return this.#drop(kept);
    clock.after(this.#settings.keepMs, () => {
      if (!kept.isBusy && kept.usedMono === usedMono) this.#drop(kept);
    });
  }
}

export const aheadOfLog = "the cursor is ahead of the log: it is of another cluster, or the journal was restored";

/** Applies one batch; with `items`, says what the feed says of it. */
function replay(state: State, seq: Seq, payload: Uint8Array, items: FeedItem[] | undefined): void {
  try {
    for (const [index, event] of decodeEvents(payload).entries()) {
      apply(state, event);
      if (items) feedOf(state, event, { seq, index }, items);
    }
  } catch (cause) {
    if (isFault(cause)) throw cause;
    throw new Fault("corrupt", "replay the event feed", { shard: state.shard, seq }, cause);
  }
  state.woken.clear();
  state.unsettled.clear();
}
