/**
 * Group commit for all shards of a node: one append at a time, for everything that was decided since the last one.
 *
 * H1 No answer leaves before the append of the events behind it has returned (K7) and the owner's lease is found valid
 * after that (K8).
 * H2 A shard has at most one batch in flight. A batch with an unknown outcome is never replaced by another with the
 * same seq: it is found at the tail, sent again unchanged, or the shard is given up.
 * H3 "Does not exist" is answered only after the epoch was confirmed in the journal, by the batch's append or by a
 * separate request.
 */
import type { Clock } from "#base/clock.ts";
import { isFault } from "#base/fault.ts";
import type { Batch, Journal } from "#journal/journal.ts";
import { recordHash } from "#journal/record.ts";
import { CommitDelay, type Gathered } from "./commit-delay.ts";
import type { SealedBatch } from "./batch.ts";
import type { HostedShard, LossReason } from "./shard.ts";
import type { StoreClock } from "./kernel-clock.ts";
import type { Stamp } from "#shard/transport/protocol.ts";

export type CommitterPorts = {
  readonly clock: Clock;
  readonly journal: Pick<Journal, "append" | "confirm" | "tail">;
  readonly storeClock: StoreClock;
  /** Claimed tasks of all shards on this node. */
  readonly claims: () => number;
  /** The batch was closed: the state equals the log up to this batch. */
  readonly sealed: (shard: HostedShard, stamp: Stamp) => void;
  /** The open batch cannot be encoded. */
  readonly unsealable: (shard: HostedShard, error: unknown) => void;
  /** The batch is durable: its answers may be sent. */
  readonly release: (shard: HostedShard, batch: SealedBatch) => void;
  /** The shard cannot continue. `doubtful`: the batch in flight may still have become durable. */
  readonly lose: (shard: HostedShard, why: LossReason, doubtful: boolean) => void;
  readonly report: (doing: string, error: unknown) => void;
};

type Flight = { readonly shard: HostedShard; readonly batch: SealedBatch };

const retryMs = { first: 10, max: 250 };
/** One append carries about this much; the rest goes into the next one. */
const roundBytesMax = 16 * 1024 * 1024;

export class Committer {
  readonly #ports: CommitterPorts;
  /** Shards whose open batch has only answers from memory, and shards whose batch needs the journal. */
  readonly #quick = new Set<HostedShard>();
  readonly #dirty = new Set<HostedShard>();
  readonly #rest: CommitDelay;
  #scheduled = false;
  /** The append in progress. If all of its shards were given up it is forgotten: it may never return. */
  #round: Set<HostedShard> | undefined;
  #stopped = false;

  constructor(ports: CommitterPorts) {
    this.#ports = ports;
    this.#rest = new CommitDelay(ports.clock, () => this.#schedule());
  }

  /** Something was added to the shard's open batch. Requests that arrive in the same turn of the event loop join it. */
  touch(shard: HostedShard): void {
    if (shard.phase === "gone") return;
    if (shard.inFlight === undefined && shard.open.events.length === 0 && !shard.open.needsConfirm)
      this.#quick.add(shard);
    else this.#dirty.add(shard);
    this.#schedule();
  }

  forget(shard: HostedShard): void {
    this.#quick.delete(shard);
    this.#dirty.delete(shard);
    if (this.#round?.delete(shard) && this.#round.size === 0) this.#endRound(this.#round);
  }

  stop(): void {
    this.#stopped = true;
  }

  #schedule(): void {
    if (this.#scheduled || this.#stopped) return;
    if (this.#quick.size === 0 && this.#round !== undefined) return;
    this.#scheduled = true;
    queueMicrotask(() => this.#pump());
  }

  #pump(): void {
    this.#scheduled = false;
    if (this.#stopped) return;
    for (const shard of this.#quick) {
      this.#quick.delete(shard);
      if (shard.inFlight !== undefined || shard.open.events.length > 0 || shard.open.needsConfirm) {
        this.#dirty.add(shard);
      } else if (!shard.open.isEmpty) {
        const batch = this.#seal(shard);
        if (batch) this.#finish({ shard, batch });
      }
    }
    if (this.#round !== undefined || this.#dirty.size === 0) return;
    if (this.#rest.isWorthIt(() => this.#gathered(), this.#ports.claims)) return;
    this.#rest.appendBegins();
    const flights = this.#sealDirty();
    if (flights.length === 0) return;
    const round = new Set(flights.map(({ shard }) => shard));
    this.#round = round;
    void this.#commit(flights).then(() => this.#endRound(round));
  }

  #gathered(): Gathered {
    let [records, waiting] = [0, 0];
    for (const { open } of this.#dirty) {
      records += open.events.length;
      waiting += open.parked.length;
    }
    return { records, waiting };
  }

  #sealDirty(): Flight[] {
    const flights: Flight[] = [];
    let bytes = 0;
    for (const shard of this.#dirty) {
      if (bytes > roundBytesMax) break;
      this.#dirty.delete(shard);
      if (shard.inFlight !== undefined || shard.open.isEmpty) continue;
      const batch = this.#seal(shard);
      if (!batch) continue;
      bytes += batch.payload?.length ?? 0;
      flights.push({ shard, batch });
    }
    return flights;
  }

  #seal(shard: HostedShard): SealedBatch | undefined {
    let batch: SealedBatch;
    try {
      batch = shard.seal();
    } catch (error) {
      this.#ports.unsealable(shard, error);
      return undefined;
    }
    this.#ports.sealed(shard, batch.stamp);
    return batch;
  }

  #endRound(round: Set<HostedShard>): void {
    if (this.#round !== round) return;
    this.#round = undefined;
    this.#rest.appendEnded();
    if (this.#dirty.size > 0) this.#schedule();
  }

  async #commit(flights: readonly Flight[]): Promise<void> {
    const writes = flights.filter(({ batch }) => batch.payload !== undefined);
    const doubts = flights.filter(({ batch }) => batch.payload === undefined && batch.needsConfirm);
    for (const flight of flights)
      if (flight.batch.payload === undefined && !flight.batch.needsConfirm) this.#finish(flight);
    await Promise.all([this.#append(writes), this.#confirm(doubts)]);
  }

  async #append(flights: readonly Flight[]): Promise<void> {
    const { clock, journal, storeClock, report } = this.#ports;
    let pending = flights;
    let doubtful = false;
    for (let delayMs = retryMs.first; ; delayMs = Math.min(delayMs * 2, retryMs.max)) {
      pending = this.#stillOurs(pending, doubtful);
      if (pending.length === 0) return;
      try {
        if (doubtful) pending = await this.#found(pending);
        if (pending.length === 0) return;
        const sentMono = clock.monotonicMs();
        const { outcomes, storeNowMs } = await journal.append(pending.map(batchOf));
        storeClock.observe(storeNowMs, sentMono);
        // If the same batch was sent before, it may have been written before the epoch changed: the outcome is unknown.
        for (const [i, flight] of pending.entries())
          if (outcomes[i] === "appended") this.#finish(flight);
          else this.#lose(flight, "fenced", doubtful);
        return;
      } catch (error) {
        report("append to the journal", error);
        if (isFault(error, "unknown-outcome")) doubtful = true;
        // "invalid" after an unknown outcome: the first append did succeed. Otherwise the journal and this node
        // disagree.
        else if (!isFault(error, "unavailable") && !(doubtful && isFault(error, "invalid"))) {
          for (const flight of pending) this.#lose(flight, "doubt", true);
          return;
        }
      }
      await clock.sleep(delayMs);
      if (this.#stopped) return;
    }
  }

  /** Looks for each batch at its shard's tail; returns those that are not there. */
  async #found(flights: readonly Flight[]): Promise<readonly Flight[]> {
    const missing: Flight[] = [];
    for (const flight of flights) {
      const { epoch, seq } = flight.batch.stamp;
      const tail = await this.#ports.journal.tail(flight.shard.shard);
      if (tail.seq < seq) missing.push(flight);
      else if (tail.epoch === epoch && tail.seq === seq && tail.hash === recordHash(batchOf(flight)))
        this.#finish(flight);
      else this.#lose(flight, "fenced", true);
    }
    return missing;
  }

  async #confirm(flights: readonly Flight[]): Promise<void> {
    const { clock, journal, report } = this.#ports;
    let pending = flights;
    for (let delayMs = retryMs.first; ; delayMs = Math.min(delayMs * 2, retryMs.max)) {
      pending = this.#stillOurs(pending, false);
      if (pending.length === 0) return;
      try {
        const current = await journal.confirm(pending.map(({ shard: { shard, epoch } }) => ({ shard, epoch })));
        for (const [i, flight] of pending.entries())
          if (current[i] === true) this.#finish(flight);
          else this.#lose(flight, "fenced", false);
        return;
      } catch (error) {
        report("confirm epochs in the journal", error);
      }
      await clock.sleep(delayMs);
      if (this.#stopped) return;
    }
  }

  #stillOurs(flights: readonly Flight[], doubtful: boolean): readonly Flight[] {
    return flights.filter((flight) => {
      if (!isLive(flight)) return false;
      if (flight.shard.leaseStands) return true;
      this.#lose(flight, "lease", doubtful);
      return false;
    });
  }

  /** H1: the events are durable, or there are none; the last check is whether the lease is still valid. */
  #finish(flight: Flight): void {
    const { shard, batch } = flight;
    if (this.#stopped || !isLive(flight)) return;
    shard.durableSeq = batch.stamp.seq;
    if (!shard.leaseStands) return this.#ports.lose(shard, "lease", true);
    shard.inFlight = undefined;
    this.#ports.release(shard, batch);
    if (shard.open.isEmpty) shard.noteIdle();
    else this.touch(shard);
  }

  #lose(flight: Flight, why: LossReason, doubtful: boolean): void {
    if (!this.#stopped && isLive(flight)) this.#ports.lose(flight.shard, why, doubtful);
  }
}

const isLive = ({ shard, batch }: Flight): boolean => shard.phase !== "gone" && shard.inFlight === batch;

const batchOf = ({ shard, batch }: Flight): Batch => ({
  shard: shard.shard,
  epoch: batch.stamp.epoch,
  seq: batch.stamp.seq,
  payload: batch.payload ?? new Uint8Array(),
  keys: batch.keys,
});
