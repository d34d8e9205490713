/**
 * Kernel time. All nodes agree on the store's clock, so kernel time follows it, but at its own pace: it never runs
 * backwards, and follows a jump of the store's clock slowly, so that the jump does not expire the fleet (K11).
 */
import type { Clock } from "#base/clock.ts";
import type { ShardId } from "#base/ids.ts";
import type { Partition } from "#journal/journal.ts";

/** A reading that took longer than this says little about the time now. */
const roundTripMsMax = 1_000;
const staleMs = 60_000;
/**
 * How much faster or slower than the monotonic clock kernel time may run while it catches up. Executors keep a margin
 * for it.
 */
export const slew = 0.1;

/** Estimates the store's clock from its last reading and the monotonic time since. */
export class StoreClock {
  readonly #clock: Clock;
  #heardMono = Number.NEGATIVE_INFINITY;
  #offsetMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#offsetMs = clock.wallMs() - clock.monotonicMs();
  }

  observe(storeNowMs: number, sentMono: number): void {
    const nowMono = this.#clock.monotonicMs();
    const roundTripMs = nowMono - sentMono;
    if (roundTripMs > roundTripMsMax && nowMono - this.#heardMono < staleMs) return;
    this.#heardMono = nowMono;
    this.#offsetMs = storeNowMs + roundTripMs / 2 - nowMono;
  }

  nowMs(): number {
    return this.#clock.monotonicMs() + this.#offsetMs;
  }
}

/** The clocks of the journal's databases: each is judged by what it said itself, and they may differ. */
export class StoreClocks {
  readonly #clock: Clock;
  readonly #partition: Partition | undefined;
  readonly #clocks = new Map<number, StoreClock>();

  constructor(clock: Clock, partition?: Partition) {
    this.#clock = clock;
    this.#partition = partition;
  }

  /** Of the database that holds the shard. */
  of(shard: ShardId): StoreClock {
    const database = this.#partition?.databaseOf(shard) ?? 0;
    let found = this.#clocks.get(database);
    if (!found) this.#clocks.set(database, (found = new StoreClock(this.#clock)));
    return found;
  }
}

/** One shard's time, from the moment it was taken over. */
export class KernelClock {
  readonly #clock: Clock;
  readonly #store: StoreClock;
  #nowMs: number;
  #mono: number;

  /** `reachedMs`: the newest instant that the shard has acted on under any owner. */
  constructor(clock: Clock, store: StoreClock, reachedMs: number) {
    this.#clock = clock;
    this.#store = store;
    this.#mono = clock.monotonicMs();
    this.#nowMs = Math.max(reachedMs, store.nowMs());
  }

  nowMs(): number {
    const mono = this.#clock.monotonicMs();
    const passedMs = mono - this.#mono;
    if (passedMs > 0) {
      this.#mono = mono;
      this.#nowMs += passedMs;
      const behindMs = this.#store.nowMs() - this.#nowMs;
      const makeUpMs = passedMs * slew;
      this.#nowMs += Math.min(makeUpMs, Math.max(-makeUpMs, behindMs));
    }
    return Math.floor(this.#nowMs);
  }
}
