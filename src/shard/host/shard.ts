/** One shard as its owner holds it: the state in memory, which part of it is durable, and who waits. */
import { assert } from "#base/assert.ts";
import type { Clock } from "#base/clock.ts";
import type { ShardId } from "#base/ids.ts";
import type { State } from "#kernel/model/state.ts";
import type { Epoch, Seq } from "#journal/journal.ts";
import { weightOf } from "#shard/codec/codec.ts";
import { EventWriter } from "#shard/codec/event-writer.ts";
import { Absorber } from "./absorb.ts";
import { OpenBatch, type SealedBatch } from "./batch.ts";
import type { KernelClock } from "./kernel-clock.ts";
import type { Stamp } from "#shard/transport/protocol.ts";
import { Waiters } from "#shard/watch/waiters.ts";
import type { WatchMemory } from "#shard/watch/watch-memory.ts";
import { Watchers, type WatcherLimits } from "#shard/watch/watchers.ts";

/**
 * The part of the owner's lease that it may rely on: counted from before the renewal request was sent, on its own
 * monotonic clock, minus a margin for clocks that run at different rates (K8).
 */
export class OwnerLease {
  untilMono: number;

  constructor(untilMono: number) {
    this.untilMono = untilMono;
  }

  standsAt(mono: number): boolean {
    return mono < this.untilMono;
  }
}

/** "taking-over" until the take-over is durable; "leaving" while it is handed over. */
export type HostedPhase = "taking-over" | "serving" | "leaving" | "gone";

/**
 * Why a shard was given up. "fenced": another node has it. "lease": the lease expired. "doubt": an append has an
 * unknown outcome.
 */
export type LossReason = "fenced" | "lease" | "doubt" | "broken" | "moved" | "stopped";

export type Hosting = {
  readonly shard: ShardId;
  readonly epoch: Epoch;
  readonly lease: OwnerLease;
  readonly state: State;
  /** The newest batch in the log; the state includes it. */
  readonly seq: Seq;
  readonly keepsHistory: boolean;
};

export class HostedShard {
  readonly shard: ShardId;
  readonly epoch: Epoch;
  readonly lease: OwnerLease;
  readonly state: State;
  readonly kernelClock: KernelClock;
  readonly absorber: Absorber;
  readonly waiters: Waiters;
  readonly watchers: Watchers;
  /** Whether the event feed is read: then the next batch collects its items. */
  isFed = false;
  /** Whether history rows are collected as events are applied. */
  readonly keepsHistory: boolean;
  phase: HostedPhase = "taking-over";
  open = new OpenBatch();
  /** The open batch's events, encoded. */
  readonly writer = new EventWriter();
  inFlight: SealedBatch | undefined;
  /** The newest closed batch with events, and the newest durable one. */
  seq: Seq;
  durableSeq: Seq;
  /** Requests being prepared, parked or in flight. */
  requests = 0;
  requestBytes = 0;
  /** Commands decided and events logged since the shard was adopted: what it costs its node. */
  commands = 0;
  logged = 0;
  /** Grows whenever jobs are forgotten, so that a key lookup in progress is repeated. */
  forgets = 0;
  tickDueMono = 0;
  readonly #clock: Clock;
  readonly #idle: (() => void)[] = [];

  constructor(
    hosting: Hosting,
    kernelClock: KernelClock,
    clock: Clock,
    limits: WatcherLimits & { waitersMax: number },
    watched?: WatchMemory,
  ) {
    this.shard = hosting.shard;
    this.epoch = hosting.epoch;
    this.lease = hosting.lease;
    this.state = hosting.state;
    this.seq = hosting.seq;
    this.durableSeq = hosting.seq;
    this.keepsHistory = hosting.keepsHistory;
    this.kernelClock = kernelClock;
    this.absorber = new Absorber(this);
    this.#clock = clock;
    this.waiters = new Waiters(limits.waitersMax);
    this.watchers = new Watchers(limits, watched);
  }

  get stamp(): Stamp {
    return { epoch: this.epoch, seq: this.durableSeq };
  }

  get leaseStands(): boolean {
    return this.lease.standsAt(this.#clock.monotonicMs());
  }

  /** From the next event on, batches collect what the event feed says of them. */
  feed(isWanted: boolean): void {
    if (isWanted && !this.isFed && this.open.events.length === 0) this.open.feed = [];
    this.isFed = isWanted;
  }

  nowMs(): number {
    return this.kernelClock.nowMs();
  }

  /** Closes the open batch. None of its answers has been sent yet. */
  seal(): SealedBatch {
    assert(this.inFlight === undefined, "a shard has one batch in flight");
    const { open } = this;
    const hasEvents = open.events.length > 0;
    this.logged += open.events.length;
    const stamp = { epoch: this.epoch, seq: this.seq + (hasEvents ? 1 : 0) };
    const payload = hasEvents ? this.writer.finish() : undefined;
    const weightBytes = payload ? weightOf(payload, open.events) : 0;
    this.open = new OpenBatch(this.isFed ? [] : undefined);
    this.seq = stamp.seq;
    for (const run of open.atSeal) run(stamp);
    const { events, jobs, keys, rows, feed, parked, atRelease, atLoss, needsConfirm } = open;
    const sealedMono = this.#clock.monotonicMs();
    // Field by field: a spread is slow, and nearly every command makes a batch.
    this.inFlight = {
      stamp,
      payload,
      weightBytes,
      sealedMono,
      events,
      jobs,
      keys,
      rows,
      feed,
      parked,
      atRelease,
      atLoss,
      needsConfirm,
    };
    return this.inFlight;
  }

  /** Resolves when nothing is open or in flight, or the shard is gone. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#idle.push(resolve);
      this.noteIdle();
    });
  }

  noteIdle(): void {
    if (this.phase !== "gone" && (this.inFlight !== undefined || !this.open.isEmpty)) return;
    for (const resolve of this.#idle.splice(0)) resolve();
  }
}
