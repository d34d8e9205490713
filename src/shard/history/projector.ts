/**
 * Writes the history after the log: rows are taken from the state as events are applied, kept until their batch is
 * durable, and written in log order, outside the path of any request. A job leaves memory when its last event has been
 * written (and a little later, so that callers that wait for it still find it).
 *
 * When the history falls too far behind, new work is refused until it has caught up.
 */
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import type { JobRow } from "#base/history-rows.ts";
import { isJobOver } from "#kernel/apply/moves.ts";
import { jobRow, noRows, type Rows } from "#kernel/read/history.ts";
import type { Rejection } from "#kernel/model/rejection.ts";
import type { Journal, Seq } from "#journal/journal.ts";
import type { SealedBatch } from "#shard/host/batch.ts";
import type { ShardObserver } from "#shard/host/observer.ts";
import type { HostedShard } from "#shard/host/shard.ts";
import type { Replay } from "#shard/keeper/replay.ts";
import { countRows, mergeRows, splitRows } from "./projector-rows.ts";

export type ProjectorSettings = {
  /** Off: no rows are written, and ended jobs are forgotten after `endedKeepMs`. */
  readonly history: boolean;
  /** How long rows wait for more rows; a cursor without new rows waits longer. */
  readonly gatherMs: number;
  readonly idleMs: number;
  readonly writeRowsMax: number;
  readonly lagRowsMax: number;
  readonly lagMsMax: number;
  readonly retryMs: number;
  readonly retryMsMax: number;
  /** How long an ended job stays in memory, and how many of them at most. */
  readonly endedKeepMs: number;
  readonly endedKeepMax: number;
  readonly forgetMax: number;
  readonly forgetEveryMs: number;
  /** How often the rows of tracked jobs that have not ended are written again, with the time. */
  readonly heartbeatMs: number;
};

export const defaultProjectorSettings: ProjectorSettings = {
  history: true,
  gatherMs: 250,
  idleMs: 5_000,
  writeRowsMax: 4_000,
  lagRowsMax: 200_000,
  lagMsMax: 60_000,
  retryMs: 100,
  retryMsMax: 5_000,
  endedKeepMs: 10_000,
  endedKeepMax: 1_000,
  forgetMax: 500,
  forgetEveryMs: 500,
  heartbeatMs: 30_000,
};

export type ProjectorPorts = {
  readonly clock: Clock;
  readonly journal: Pick<Journal, "history">;
  readonly settings: ProjectorSettings;
  readonly forget: (shard: ShardId, jobs: readonly number[]) => Promise<unknown>;
  readonly report: (doing: string, error: unknown) => void;
};

type Entry = { readonly seq: Seq; readonly rows: Rows; readonly count: number; readonly mono: number };
type Ended = { readonly job: number; readonly seq: Seq; readonly mono: number };
type Waiting = { readonly seq: Seq; readonly resolve: (reached: boolean) => void };

class Track {
  readonly shard: HostedShard;
  queue: Entry[] = [];
  rows = 0;
  cursor: Seq;
  ended: Ended[] = [];
  /** Tracked jobs that have not ended, as their newest durable row has them. */
  readonly tracked = new Map<number, JobRow>();
  beatMono: number;
  waiting: Waiting[] = [];
  writing = false;
  forgetting = false;
  gone = false;
  retryMs = 0;
  cancelTimer: (() => void) | undefined;
  timerMono = Number.POSITIVE_INFINITY;

  constructor(shard: HostedShard, cursor: Seq, mono: number) {
    this.shard = shard;
    this.cursor = cursor;
    this.beatMono = mono;
  }
}

export type HistoryLag = { readonly rows: number; readonly ms: number; readonly cursor: Seq };

export class Projector implements ShardObserver {
  readonly #ports: ProjectorPorts;
  readonly #tracks = new Map<HostedShard, Track>();
  readonly #primed = new Map<ShardId, Replay>();
  #stopped = false;
  #cancelSweep: (() => void) | undefined;

  constructor(ports: ProjectorPorts) {
    this.#ports = ports;
  }

  start(): void {
    this.#scheduleSweep();
  }

  kill(): void {
    this.#stopped = true;
    this.#cancelSweep?.();
    for (const { cancelTimer } of this.#tracks.values()) cancelTimer?.();
  }

  /** What the replay of the shard found that the history may lack; called before the shard is adopted. */
  prime(replay: Replay): void {
    this.#primed.set(replay.shard, replay);
  }

  adopted(shard: HostedShard): void {
    const replay = this.#primed.get(shard.shard);
    this.#primed.delete(shard.shard);
    const mono = this.#ports.clock.monotonicMs();
    const track = new Track(shard, replay?.historySeq ?? 0, mono);
    this.#tracks.set(shard, track);
    // History that was written but not synced may be lost in a power failure; the archive has the missing part.
    if (replay && this.#ports.settings.history && replay.historySeq < replay.snapshotSeq)
      this.#ports.report(
        `write the history of shard ${shard.shard}`,
        new Fault("corrupt", "resume history", {
          cursor: replay.historySeq,
          snapshot: replay.snapshotSeq,
          why: "rows between them are missing until the node is stopped and `millrace history rebuild` has run",
        }),
      );
    for (const job of shard.state.jobs.values())
      if (job.extras?.tracked && !isJobOver(job))
        track.tracked.set(job.no, jobRow(shard.state, job, shard.state.nowMs));
    for (const { seq, rows } of replay?.rows ?? []) this.#enqueue(track, seq, rows, mono);
    // Their last event is somewhere in the replayed batches.
    for (const { no: job, phase } of shard.state.jobs.values())
      if (phase === "SUCCEEDED" || phase === "FAILED" || phase === "CANCELLED")
        track.ended.push({ job, seq: shard.durableSeq, mono });
    this.#schedule(track);
  }

  durable(shard: HostedShard, { stamp, events, rows }: SealedBatch): void {
    const track = this.#tracks.get(shard);
    if (!track) return;
    const mono = this.#ports.clock.monotonicMs();
    this.#enqueue(track, stamp.seq, rows, mono);
    for (const event of events)
      if (event.kind === "job-ended") track.ended.push({ job: event.job, seq: stamp.seq, mono });
    this.#schedule(track);
    this.#forgetSurplus(track);
  }

  gone(shard: HostedShard): void {
    const track = this.#tracks.get(shard);
    if (!track) return;
    this.#tracks.delete(shard);
    track.gone = true;
    track.cancelTimer?.();
    for (const { resolve } of track.waiting) resolve(false);
  }

  full(shard: HostedShard): Rejection | undefined {
    const { lagRowsMax, lagMsMax, retryMsMax } = this.#ports.settings;
    const { rows, ms } = this.lag(shard);
    if (rows <= lagRowsMax && ms <= lagMsMax) return undefined;
    return { kind: "shard-full", what: "history", retryAfterMs: retryMsMax };
  }

  lag(shard: HostedShard): HistoryLag {
    const track = this.#tracks.get(shard);
    if (!track) return { rows: 0, ms: 0, cursor: 0 };
    const oldest = track.rows === 0 ? undefined : track.queue.find(({ count }) => count > 0);
    const ms = oldest === undefined ? 0 : this.#ports.clock.monotonicMs() - oldest.mono;
    return { rows: track.rows, ms, cursor: track.cursor };
  }

  /** Resolves when the history has been written up to the batch; false if this owner will never do so. */
  reached(shard: HostedShard, seq: Seq): Promise<boolean> {
    const track = this.#tracks.get(shard);
    if (!track) return Promise.resolve(false);
    if (track.cursor >= seq) return Promise.resolve(true);
    return new Promise((resolve) => {
      track.waiting.push({ seq, resolve });
      this.#schedule(track);
    });
  }

  #enqueue(track: Track, seq: Seq, rows: Rows, mono: number): void {
    if (seq <= track.cursor) return;
    const count = countRows(rows);
    track.queue.push({ seq, rows, count, mono });
    track.rows += count;
    for (const row of rows.jobs)
      if (row.endedAtMs === 0) track.tracked.set(row.job, row);
      else track.tracked.delete(row.job);
  }

  /** Says of every tracked job that it was still so, a moment ago. */
  #beat(track: Track): void {
    const { clock, settings } = this.#ports;
    const mono = clock.monotonicMs();
    if (track.tracked.size === 0 || mono - track.beatMono < settings.heartbeatMs || track.queue.length > 0) return;
    track.beatMono = mono;
    const seenAtMs = track.shard.nowMs();
    const jobs = [...track.tracked.values()].map((row) => ({ ...row, seenAtMs: Math.max(seenAtMs, row.seenAtMs) }));
    for (const rows of splitRows({ ...noRows(), jobs }, settings.writeRowsMax)) {
      const count = countRows(rows);
      // Rows at the cursor are written again: this says nothing about later batches.
      track.queue.push({ seq: track.cursor, rows, count, mono });
      track.rows += count;
    }
    this.#schedule(track);
  }

  #schedule(track: Track): void {
    if (track.writing || track.queue.length === 0 || this.#stopped) return;
    const { clock, settings } = this.#ports;
    const isHasty = track.rows > 0 || track.waiting.length > 0;
    const inMs =
      track.retryMs > 0
        ? track.retryMs
        : track.rows >= settings.writeRowsMax
          ? 0
          : isHasty
            ? settings.gatherMs
            : settings.idleMs;
    const atMono = clock.monotonicMs() + inMs;
    if (track.cancelTimer && track.timerMono <= atMono) return;
    track.cancelTimer?.();
    track.timerMono = atMono;
    track.cancelTimer = clock.after(inMs, () => {
      track.cancelTimer = undefined;
      track.timerMono = Number.POSITIVE_INFINITY;
      void this.#write(track);
    });
  }

  async #write(track: Track): Promise<void> {
    if (track.writing || track.gone || this.#stopped) return;
    track.writing = true;
    const { settings, journal, report } = this.#ports;
    const { shard, epoch } = track.shard;
    const entries = headOf(track.queue, settings.writeRowsMax);
    const throughSeq = entries.at(-1)?.seq ?? track.cursor;
    try {
      const rows = settings.history ? mergeRows(entries.map((entry) => entry.rows)) : noRows();
      await journal.history.record(shard, { epoch, throughSeq }, rows);
      track.retryMs = 0;
      this.#wrote(track, entries, throughSeq);
    } catch (error) {
      if (track.gone || this.#stopped) return;
      report(`write the history of shard ${shard}`, error);
      track.retryMs = isFault(error, "stale")
        ? settings.retryMsMax
        : Math.min(Math.max(track.retryMs * 2, settings.retryMs), settings.retryMsMax);
    }
    track.writing = false;
    if (!track.gone) this.#schedule(track);
  }

  #wrote(track: Track, entries: readonly Entry[], throughSeq: Seq): void {
    track.queue.splice(0, entries.length);
    track.rows -= entries.reduce((sum, { count }) => sum + count, 0);
    track.cursor = throughSeq;
    this.#forgetSurplus(track);
    const reached = track.waiting.filter(({ seq }) => seq <= throughSeq);
    if (reached.length === 0) return;
    track.waiting = track.waiting.filter(({ seq }) => seq > throughSeq);
    for (const { resolve } of reached) resolve(true);
  }

  #scheduleSweep(): void {
    if (this.#stopped) return;
    this.#cancelSweep = this.#ports.clock.after(this.#ports.settings.forgetEveryMs, () => {
      for (const track of this.#tracks.values()) {
        void this.#forget(track);
        if (this.#ports.settings.history) this.#beat(track);
      }
      this.#scheduleSweep();
    });
  }

  /** At once: objects that a busy shard releases while they are young need no major garbage collection. */
  #forgetSurplus(track: Track): void {
    const { endedKeepMax, forgetMax } = this.#ports.settings;
    if (track.ended.length >= endedKeepMax + forgetMax) void this.#forget(track);
  }

  async #forget(track: Track): Promise<void> {
    const { clock, settings, forget, report } = this.#ports;
    if (track.forgetting || track.ended.length === 0 || track.shard.phase !== "serving") return;
    track.forgetting = true;
    // As many commands as it takes: a shard that ends ten thousand jobs a second must forget as many.
    let turns = Math.ceil(track.ended.length / settings.forgetMax);
    try {
      for (let due = this.#due(track); due.length > 0 && turns > 0 && !track.gone; due = this.#due(track)) {
        turns -= 1;
        await forget(
          track.shard.shard,
          due.map(({ job }) => job),
        );
        const mono = clock.monotonicMs();
        const { jobs } = track.shard.state;
        // The kernel keeps jobs that may still have running work.
        const stayed = due.filter(({ job }) => jobs.has(job)).map((ended) => ({ ...ended, mono }));
        track.ended.splice(0, due.length);
        track.ended.push(...stayed);
      }
    } catch (error) {
      if (!track.gone && !this.#stopped) report(`forget ended jobs of shard ${track.shard.shard}`, error);
    }
    track.forgetting = false;
  }

  /** The jobs that ended first: the list is in the order in which they ended. */
  #due({ ended, cursor }: Track): readonly Ended[] {
    const { clock, settings } = this.#ports;
    const oldMono = clock.monotonicMs() - settings.endedKeepMs;
    const tooMany = ended.length - settings.endedKeepMax;
    const writtenSeq = settings.history ? cursor : Number.POSITIVE_INFINITY;
    let end = 0;
    for (; end < ended.length && end < settings.forgetMax; end += 1) {
      const { mono, seq } = ended[end] as Ended;
      if (seq > writtenSeq || (mono > oldMono && end >= tooMany)) break;
    }
    return ended.slice(0, end);
  }
}

function headOf(queue: readonly Entry[], rowsMax: number): readonly Entry[] {
  let rows = 0;
  const end = queue.findIndex(({ count }, i) => (rows += count) > rowsMax && i > 0);
  return end === -1 ? [...queue] : queue.slice(0, end);
}
