/**
 * Claims that came when every slot was taken: several shards are asked at once, and each may grant what only one of
 * them should have. Giving such a claim back costs its shard a record, and asking for it again another, so where
 * attempts are short it waits here for the next slot; where they are not, others should have it soon.
 */
import type { Clock } from "#base/clock.ts";
import type { Holding } from "./holding.ts";

export type SparesPorts = {
  readonly clock: Clock;
  readonly countMax: number;
  /** Its time is up, or the worker takes no more work. */
  readonly giveBack: (holding: Holding) => void;
};

const keepMsMin = 20;
const keepMsMax = 250;
/** How much the last attempt counts for what is usual. */
const lastShare = 0.2;

export class Spares {
  readonly #ports: SparesPorts;
  /** The oldest first, with what cancels the end of its time. */
  readonly #waiting = new Map<Holding, () => void>();
  #usualMs = 0;

  constructor(ports: SparesPorts) {
    this.#ports = ports;
  }

  /** How long an attempt held its slot. */
  learn(tookMs: number): void {
    this.#usualMs += (tookMs - this.#usualMs) * lastShare;
  }

  /** False when there are too many already. */
  keep(holding: Holding): boolean {
    const { clock, countMax, giveBack } = this.#ports;
    if (this.#waiting.size >= countMax) return false;
    const keepMs = Math.min(keepMsMax, Math.max(keepMsMin, 4 * this.#usualMs));
    const cancel = clock.after(keepMs, () => {
      if (this.#waiting.delete(holding)) giveBack(holding);
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
