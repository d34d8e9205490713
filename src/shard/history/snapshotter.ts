/**
 * Saves a snapshot of a shard when reading its log back would take long. A snapshot begins when a batch is closed,
 * because the state then equals the log up to that batch, and is written in small slices while the shard goes on.
 *
 * It is saved only when that batch is durable and the history has been written up to it: a replay from the snapshot
 * must not need rows of earlier events.
 */
import type { Clock } from "#base/clock.ts";
import { isFault } from "#base/fault.ts";
import { beginCapture, type Capture } from "#kernel/snapshot/capture.ts";
import type { Journal, Seq } from "#journal/journal.ts";
import { encodeText } from "#shard/codec/snapshot.ts";
import type { SealedBatch } from "#shard/host/batch.ts";
import type { ShardObserver } from "#shard/host/observer.ts";
import type { HostedShard } from "#shard/host/shard.ts";
import type { Replay } from "#shard/keeper/replay.ts";
import type { Stamp } from "#shard/transport/protocol.ts";

export type SnapshotSettings = {
  /** Log since the last snapshot: at least this much, and at least this share of the state's memory. */
  readonly logBytesMin: number;
  readonly stateShare: number;
  readonly chunkSize: number;
  readonly atOnceMax: number;
  /** The pause after a snapshot that failed. */
  readonly pauseMs: number;
};

export const defaultSnapshotSettings: SnapshotSettings = {
  // Takes about a second to read back. With an eighth of it, snapshots cost as much CPU on a busy shard as the work
  // itself.
  logBytesMin: 64 * 1024 * 1024,
  stateShare: 1,
  chunkSize: 128 * 1024,
  atOnceMax: 1,
  pauseMs: 10_000,
};

export type SnapshotterPorts = {
  readonly clock: Clock;
  readonly journal: Pick<Journal, "saveSnapshot">;
  readonly settings: SnapshotSettings;
  /** Resolves when the history has been written up to the batch; false when it will not be. */
  readonly projected: (shard: HostedShard, seq: Seq) => Promise<boolean>;
  readonly saved: (shard: HostedShard, seq: Seq) => void;
  readonly report: (doing: string, error: unknown) => void;
};

type Track = {
  readonly shard: HostedShard;
  snapshotSeq: Seq;
  /** Log written since the last snapshot. */
  logBytes: number;
  notBeforeMono: number;
  capture: Capture | undefined;
  awaiting: { readonly seq: Seq; readonly resolve: (durable: boolean) => void } | undefined;
};

export class Snapshotter implements ShardObserver {
  readonly #ports: SnapshotterPorts;
  readonly #tracks = new Map<HostedShard, Track>();
  readonly #primed = new Map<number, Replay>();
  #atOnce = 0;
  #stopped = false;

  constructor(ports: SnapshotterPorts) {
    this.#ports = ports;
  }

  kill(): void {
    this.#stopped = true;
  }

  prime(replay: Replay): void {
    this.#primed.set(replay.shard, replay);
  }

  snapshotSeq(shard: HostedShard): Seq {
    return this.#tracks.get(shard)?.snapshotSeq ?? 0;
  }

  adopted(shard: HostedShard): void {
    const replay = this.#primed.get(shard.shard);
    this.#primed.delete(shard.shard);
    this.#tracks.set(shard, {
      shard,
      snapshotSeq: replay?.snapshotSeq ?? 0,
      logBytes: replay?.logBytes ?? 0,
      notBeforeMono: Number.NEGATIVE_INFINITY,
      capture: undefined,
      awaiting: undefined,
    });
  }

  sealed(shard: HostedShard, stamp: Stamp): void {
    const track = this.#tracks.get(shard);
    if (!track || !this.#isDue(track, stamp)) return;
    track.capture = beginCapture(shard.state);
    this.#atOnce += 1;
    void this.#save(track, track.capture, stamp).then(() => {
      track.capture?.abort();
      track.capture = undefined;
      this.#atOnce -= 1;
    });
  }

  durable(shard: HostedShard, { stamp, weightBytes }: SealedBatch): void {
    const track = this.#tracks.get(shard);
    if (!track) return;
    track.logBytes += weightBytes;
    const { awaiting } = track;
    if (!awaiting || awaiting.seq > stamp.seq) return;
    track.awaiting = undefined;
    awaiting.resolve(true);
  }

  gone(shard: HostedShard): void {
    const track = this.#tracks.get(shard);
    this.#tracks.delete(shard);
    track?.awaiting?.resolve(false);
  }

  #isDue({ shard, logBytes, snapshotSeq, capture, notBeforeMono }: Track, { seq }: Stamp): boolean {
    const { clock, settings } = this.#ports;
    if (capture !== undefined || shard.phase !== "serving" || seq <= snapshotSeq || this.#stopped) return false;
    if (logBytes < settings.logBytesMin || logBytes < shard.state.bytes * settings.stateShare) return false;
    return this.#atOnce < settings.atOnceMax && clock.monotonicMs() >= notBeforeMono;
  }

  async #save(track: Track, capture: Capture, { epoch, seq }: Stamp): Promise<void> {
    const { clock, journal, settings, projected, saved, report } = this.#ports;
    const { shard } = track;
    // Batches logged from here on are not in the snapshot; the batch that was just closed is.
    const coveredBytes = track.logBytes;
    try {
      if (!(await this.#durable(track, seq)) || !(await projected(shard, seq))) return;
      await journal.saveSnapshot(shard.shard, { epoch, seq }, this.#chunks(track, capture));
      if (this.#isOver(track)) return;
      track.snapshotSeq = seq;
      track.logBytes -= coveredBytes;
      saved(shard, seq);
    } catch (error) {
      track.notBeforeMono = clock.monotonicMs() + settings.pauseMs;
      if (!this.#isOver(track) && !isFault(error, "stale")) report(`save a snapshot of shard ${shard.shard}`, error);
    }
  }

  #durable(track: Track, seq: Seq): Promise<boolean> {
    if (track.shard.durableSeq >= seq) return Promise.resolve(true);
    return new Promise((resolve) => (track.awaiting = { seq, resolve }));
  }

  /** Produces chunks as the journal asks for them, with a turn of the event loop between two chunks. */
  async *#chunks(track: Track, capture: Capture): AsyncGenerator<Uint8Array> {
    for (;;) {
      if (this.#isOver(track)) throw abandoned();
      const text = capture.next(this.#ports.settings.chunkSize);
      if (text === undefined) return;
      yield encodeText(text);
      await this.#ports.clock.sleep(0);
    }
  }

  #isOver({ shard }: Track): boolean {
    return this.#stopped || shard.phase === "gone";
  }
}

const abandoned = (): Error => new Error("this node no longer owns the shard: its snapshot is abandoned");
