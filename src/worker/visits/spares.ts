/**
 * Claims that arrived when every slot was taken: several shards are asked at once, and each may grant what only one of
 * them should. Releasing a claim costs its shard a record, and granting it again another. So if attempts are short, the
 * claim waits here for the next slot; if they are long, it is released soon for other workers.
 */
import type { Clock } from "#base/clock.ts";
import type { Holding } from "#worker/holding.ts";

export type SparesPorts = {
  readonly clock: Clock;
  readonly countMax: number;
  /** The claim waited too long, or the worker takes no more work. */
  readonly giveBack: (holding: Holding) => void;
};

const keepMsMin = 20;
const keepMsMax = 250;
/** The weight of the last attempt in the moving average. */
const lastShare = 0.2;

export class Spares {
  readonly #ports: SparesPorts;
  /** Oldest first, with the function that cancels its timer. */
  readonly #waiting = new Map<Holding, () => void>();
  #usualMs = 0;

  constructor(ports: SparesPorts) {
    this.#ports = ports;
  }

  /** How long an attempt held its slot. */
  learn(tookMs: number): void {
    this.#usualMs += (tookMs - this.#usualMs) * lastShare;
  }

  /** False if too many are waiting already. */
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
