/** Brings a shard's state back from its snapshot and log, in slices: the leases of the other shards go on meanwhile. */
import { Fault, isFault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import { apply } from "#kernel/apply.ts";
import { jobOf } from "#kernel/event-job.ts";
import { historyOf, noRows, type Rows } from "#kernel/history.ts";
import type { Limits } from "#kernel/limits.ts";
import { Restorer } from "#kernel/restore.ts";
import { createState, type State } from "#kernel/state.ts";
import type { Journal, LogRecord, Seq } from "#journal/journal.ts";
import { decodeEvents, weightOf } from "./codec.ts";
import { decodeTexts } from "./codec-snapshot.ts";
import type { Place, Slice, Turns } from "./keeper-turns.ts";
import type { DurableEvents } from "./watchers.ts";

export type ReplayPorts = {
  readonly turns: Turns;
  readonly journal: Pick<Journal, "read" | "loadSnapshot" | "history">;
  readonly limits: Limits;
  readonly keepsHistory: boolean;
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
  /** The newest batch that the state holds. */
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
      slice.work(text.length, () => guarded({ shard, seq: snapshot.seq }, () => restorer.add(text)));
      if (slice.isOver) await slice.next("in line");
    }
    const state = guarded({ shard, seq: snapshot.seq }, () => restorer.finish());
    return new Replay(ports, state, snapshot.seq, historySeq);
  }

  /** Reads on until the batch `seq`, which the journal says is there. */
  async readTo(seq: Seq, place: Place = "in line"): Promise<void> {
    const { shard } = this;
    if (seq < this.seq) throw new Fault("corrupt", "replay", { shard, why: "the log ends before the snapshot", seq });
    if (seq === this.seq) return;
    for await (const record of this.#ports.journal.read(shard, this.seq + 1)) {
      this.#slice.work(record.payload.length, () => this.#take(record));
      if (record.seq === seq) return;
      if (this.#slice.isOver) await this.#slice.next(place);
    }
    throw new Fault("corrupt", "replay", { shard, why: "the log ends before its tail", seq: this.seq, tail: seq });
  }

  #take({ seq, epoch, payload }: LogRecord): void {
    const { shard, state } = this;
    const events = decodeEvents(payload);
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

/** What cannot be read back is corrupt, whichever way it shows. */
function guarded<T>(facts: { readonly shard: ShardId; readonly seq: Seq }, run: () => T): T {
  try {
    return run();
  } catch (cause) {
    if (isFault(cause)) throw cause;
    throw new Fault("corrupt", "replay", facts, cause);
  }
}
