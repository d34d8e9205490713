/**
 * Claims that wait for a slot. Some arrive unasked: several shards are asked at once, and each may grant what only one
 * of them should. Others are taken ahead: if attempts are shorter than the way to a shard and back, slots would be idle
 * for most of the time (ADR 0250). Releasing a claim costs its shard a record, and granting it again another, so it
 * waits for as long as short attempts need; if they take longer than that, it is released for other workers.
 */
import type { Clock } from "#base/clock.ts";
import type { Holding } from "#worker/holding.ts";

export type SparesPorts = {
  readonly clock: Clock;
  readonly slots: number;
  /** Kept in any case. */
  readonly countMin: number;
  /** Taken ahead, at most. */
  readonly aheadMax: number;
  /** The claim waited too long, or the worker takes no more work. */
  readonly giveBack: (holding: Holding) => void;
};

const keepMsMin = 60;
const keepMsMax = 250;
/** What is taken ahead is begun within about this time: other workers should not have to wait for it. */
const aheadMs = 20;
/** The weight of the last attempt in the moving average. */
const lastShare = 0.2;

export class Spares {
  readonly #ports: SparesPorts;
  /** Oldest first, with the function that cancels its timer. */
  readonly #waiting = new Map<Holding, () => void>();
  #usualMs: number | undefined;

  constructor(ports: SparesPorts) {
    this.#ports = ports;
  }

  get count(): number {
    return this.#waiting.size;
  }

  /** How long an attempt held its slot. One that was long counts at once: what waits behind others like it is late. */
  learn(tookMs: number): void {
    const before = this.#usualMs ?? tookMs;
    this.#usualMs = before + (tookMs - before) * lastShare;
  }

  /** How many claims more than free slots are worth taking. */
  get wanted(): number {
    const { slots, aheadMax } = this.#ports;
    if (this.#usualMs === undefined || this.#usualMs >= aheadMs) return 0;
    const enough = Math.min(aheadMax, Math.floor((slots * aheadMs) / Math.max(this.#usualMs, 0.1)));
    // In large steps: each request costs as much as many claims in one.
    return this.#waiting.size > enough / 2 ? 0 : enough - this.#waiting.size;
  }

  /** False if too many are waiting already. */
  keep(holding: Holding): boolean {
    const { clock, countMin, aheadMax, giveBack } = this.#ports;
    if (this.#waiting.size >= Math.max(countMin, aheadMax)) return false;
    const keepMs = Math.min(keepMsMax, Math.max(keepMsMin, 4 * (this.#usualMs ?? 0)));
    const cancel = clock.after(keepMs, () => {
      if (!this.#waiting.delete(holding)) return;
      this.#usualMs = undefined; // attempts are not as short as they were: nothing is taken ahead until one has ended
      giveBack(holding);
    });
    this.#waiting.set(holding, cancel);
    return true;
  }

  take(): Holding | undefined {
    const [oldest] = this.#waiting;
    if (!oldest) return undefined;
    const [holding, cancel] = oldest;
    cancel();
    this.#waiting.delete(holding);
    return holding;
  }

  giveAllBack(): void {
    for (let holding = this.take(); holding; holding = this.take()) this.#ports.giveBack(holding);
  }
}
