/**
 * Rebuilds a shard's state from its snapshot and log, in slices, so that the leases of the other shards are renewed
 * meanwhile.
 */
import { Fault, isFault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import { apply } from "#kernel/apply/apply.ts";
import type { Event } from "#kernel/model/event.ts";
import { jobOf } from "#kernel/model/event-job.ts";
import { historyOf, noRows, type Rows } from "#kernel/read/history.ts";
import type { Limits } from "#kernel/model/limits.ts";
import { mapRows, Restorer, rowsOf, type SnapshotRows } from "#kernel/snapshot/restore.ts";
import { createState, type State } from "#kernel/model/state.ts";
import type { Journal, LogRecord, Seq } from "#journal/journal.ts";
import { decodeEvents, weightOf } from "#shard/codec/codec.ts";
import { decodeTexts } from "#shard/codec/snapshot.ts";
import type { QueuePosition, Slice, Turns } from "./turns.ts";
import type { LargeTexts } from "#shard/texts/large-texts.ts";
import { mapEvents, type MapText } from "#shard/texts/text-fields.ts";
import type { DurableEvents } from "#shard/watch/watchers.ts";

export type ReplayPorts = {
  readonly turns: Turns;
  readonly journal: Pick<Journal, "read" | "loadSnapshot" | "history">;
  readonly limits: Limits;
  readonly keepsHistory: boolean;
  /** Moves long texts into the store: an older version left them in the log, and they may exceed memory. */
  readonly texts?: LargeTexts;
  readonly report?: (doing: string, error: unknown) => void;
};

/** Rows that the history may not have yet. */
export type UnwrittenRows = { readonly seq: Seq; readonly rows: Rows };

const recentMax = { batches: 1_000, bytes: 1024 * 1024 };

export class Replay {
  readonly shard: ShardId;
  readonly state: State;
  readonly snapshotSeq: Seq;
  /** How far the history was written when the replay began. */
  readonly historySeq: Seq;
  /** The newest batch that the state includes. */
  seq: Seq;
  /** How much log had to be read. */
  logBytes = 0;
  readonly recent: DurableEvents[] = [];
  readonly rows: UnwrittenRows[] = [];
  readonly #ports: ReplayPorts;
  readonly #slice: Slice;
  #recentBytes = 0;

  private constructor(ports: ReplayPorts, state: State, snapshotSeq: Seq, historySeq: Seq) {
    this.#ports = ports;
    this.#slice = ports.turns.slice();
    this.shard = state.shard;
    this.state = state;
    this.snapshotSeq = snapshotSeq;
    this.historySeq = historySeq;
    this.seq = snapshotSeq;
  }

  static async begin(ports: ReplayPorts, shard: ShardId): Promise<Replay> {
    const { journal, limits, turns } = ports;
    const historySeq = await journal.history.cursor(shard);
    const snapshot = await journal.loadSnapshot(shard);
    if (!snapshot) return new Replay(ports, createState(shard, limits), 0, historySeq);
    const restorer = new Restorer(shard, limits);
    const slice = turns.slice();
    for await (const text of decodeTexts(snapshot.chunks)) {
      let rows: SnapshotRows = [];
      slice.work(text.length, () => guarded({ shard, seq: snapshot.seq }, () => (rows = rowsOf(text))));
      const toReference = await keptApart(ports, (map) => mapRows(rows, map));
      slice.work(0, () =>
        guarded({ shard, seq: snapshot.seq }, () => {
          if (toReference) mapRows(rows, toReference);
          restorer.addRows(rows);
        }),
      );
      if (slice.isOver) await slice.next("in line");
    }
    const state = guarded({ shard, seq: snapshot.seq }, () => restorer.finish());
    return new Replay(ports, state, snapshot.seq, historySeq);
  }

  /** Reads on to batch `seq`, which the journal says exists. */
  async readTo(seq: Seq, place: QueuePosition = "in line"): Promise<void> {
    const { shard } = this;
    if (seq < this.seq) throw new Fault("corrupt", "replay", { shard, why: "the log ends before the snapshot", seq });
    if (seq === this.seq) return;
    for await (const record of this.#ports.journal.read(shard, this.seq + 1)) {
      let events: readonly Event[] = [];
      this.#slice.work(record.payload.length, () => (events = decodeEvents(record.payload)));
      const toReference = await keptApart(this.#ports, (map) => void mapEvents(events, map));
      if (toReference) events = mapEvents(events, toReference);
      this.#slice.work(0, () => this.#take(record, events));
      if (record.seq === seq) return;
      if (this.#slice.isOver) await this.#slice.next(place);
    }
    throw new Fault("corrupt", "replay", { shard, why: "the log ends before its tail", seq: this.seq, tail: seq });
  }

  #take({ seq, epoch, payload }: LogRecord, events: readonly Event[]): void {
    const { shard, state } = this;
    const jobs: (number | undefined)[] = [];
    const rows = noRows();
    const wantsRows = this.#ports.keepsHistory && seq > this.historySeq;
    guarded({ shard, seq }, () => {
      for (const event of events) {
        apply(state, event);
        jobs.push(jobOf(state, event));
        if (wantsRows) historyOf(state, event, rows);
      }
    });
    state.woken.clear();
    this.seq = seq;
    const sizeBytes = weightOf(payload, events);
    this.logBytes += sizeBytes;
    if (wantsRows) this.rows.push({ seq, rows });
    this.#remember({ stamp: { epoch, seq }, events, jobs, sizeBytes });
  }

  #remember(durable: DurableEvents): void {
    this.recent.push(durable);
    this.#recentBytes += durable.sizeBytes;
    while (this.recent.length > recentMax.batches || this.#recentBytes > recentMax.bytes) {
      const oldest = this.recent.shift();
      if (!oldest) break;
      this.#recentBytes -= oldest.sizeBytes;
    }
  }
}

/** Moves long texts into the store. Returns the replacement for each, or undefined if there is nothing to replace. */
async function keptApart({ texts, report }: ReplayPorts, each: (map: MapText) => void): Promise<MapText | undefined> {
  if (!texts?.hasLargeIn(each)) return undefined;
  try {
    return await texts.keepAll(each);
  } catch (error) {
    // Go on: they may still fit into memory.
    report?.("keep long texts of a log in the store", error);
    return undefined;
  }
}

/** Any failure to decode means "corrupt". */
function guarded<T>(facts: { readonly shard: ShardId; readonly seq: Seq }, run: () => T): T {
  try {
    return run();
  } catch (cause) {
    if (isFault(cause)) throw cause;
    throw new Fault("corrupt", "replay", facts, cause);
  }
}
