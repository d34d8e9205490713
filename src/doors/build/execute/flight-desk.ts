/**
 * Which actions are running, and where: a worker with an equal action waits for that result instead of running it, too.
 * Kept in memory only: a desk that forgets a run costs a second run, and nothing else.
 *
 * FL1 No worker waits for an action that is not running: its runner renews it, and waiting workers are told when it
 * stops.
 * FL2 The number of runs and of waiting workers is limited; beyond that each runs its own.
 *
 * It takes a moment until a result is in the cache. A worker that missed it there just before still gets it here.
 */
import type { Clock } from "#base/clock.ts";
import type { Digest } from "#base/digest.ts";

/** The result of a run, for equal actions: as a worker records it. */
export type SharedResult = {
  readonly payload: string;
  readonly digests: readonly Digest[];
  /** It is about to be in the cache. */
  readonly isForCache: boolean;
};

export type DeskQuestion = {
  /** Of the tenant and the action. */
  readonly key: string;
  /** Identifies the asking worker, for as long as it runs. */
  readonly runner: string;
  /** How long to wait for the end of another run; 0 to renew one's own, or just to look. */
  readonly waitMs: number;
  /** The cache was checked without success: a result that ended a moment ago and is about to be there is accepted. */
  readonly takesEnded: boolean;
};

export type DeskAnswer =
  /** Run it. */
  | { readonly kind: "yours" }
  | { readonly kind: "shared"; readonly shared: SharedResult }
  /** The awaited run ended without a result for others. */
  | { readonly kind: "ended" }
  | { readonly kind: "busy" };

export type Desk = {
  enter(question: DeskQuestion, signal: AbortSignal): Promise<DeskAnswer>;
  end(key: string, runner: string, shared: SharedResult | undefined): Promise<void>;
};

export type DeskLimits = {
  readonly leaseMs: number;
  readonly runsMax: number;
  readonly waitingMax: number;
  /** How long a result that is about to be in the cache is kept. */
  readonly endedMs: number;
  readonly endedMax: number;
  /** Larger ones are not kept. */
  readonly endedDigestsMax: number;
};

export const deskLimitsDefault: DeskLimits = {
  leaseMs: 10_000,
  runsMax: 10_000,
  waitingMax: 10_000,
  endedMs: 5_000,
  endedMax: 500,
  endedDigestsMax: 500,
};

type RunUnderWay = {
  readonly runner: string;
  readonly waiting: Set<(answer: DeskAnswer) => void>;
  renewedMono: number;
  cancel: () => void;
};

export class FlightDesk implements Desk {
  readonly #clock: Clock;
  readonly #limits: DeskLimits;
  readonly #runs = new Map<string, RunUnderWay>();
  /** Oldest first. */
  readonly #ended = new Map<string, { readonly shared: SharedResult; readonly untilMono: number }>();
  #waiting = 0;

  constructor(clock: Clock, limits: Partial<DeskLimits> = {}) {
    this.#clock = clock;
    this.#limits = { ...deskLimitsDefault, ...limits };
  }

  async enter({ key, runner, waitMs, takesEnded }: DeskQuestion, signal: AbortSignal): Promise<DeskAnswer> {
    const run = this.#runs.get(key);
    const ended = run || !takesEnded ? undefined : this.#ended.get(key);
    if (ended && ended.untilMono > this.#clock.monotonicMs()) return { kind: "shared", shared: ended.shared };
    if (!run) return this.#begin(key, runner);
    if (run.runner === runner) {
      run.renewedMono = this.#clock.monotonicMs();
      return { kind: "yours" };
    }
    if (waitMs <= 0 || signal.aborted || this.#waiting >= this.#limits.waitingMax) return { kind: "busy" };
    return await this.#wait(run, waitMs, signal);
  }

  async end(key: string, runner: string, shared: SharedResult | undefined): Promise<void> {
    const run = this.#runs.get(key);
    if (run?.runner !== runner) return;
    this.#drop(key, run, shared ? { kind: "shared", shared } : { kind: "ended" });
    if (shared?.isForCache && shared.digests.length <= this.#limits.endedDigestsMax) this.#keep(key, shared);
  }

  #keep(key: string, shared: SharedResult): void {
    const nowMono = this.#clock.monotonicMs();
    this.#ended.delete(key);
    for (const [other, { untilMono }] of this.#ended) {
      if (untilMono > nowMono && this.#ended.size < this.#limits.endedMax) break;
      this.#ended.delete(other);
    }
    this.#ended.set(key, { shared, untilMono: nowMono + this.#limits.endedMs });
  }

  #begin(key: string, runner: string): DeskAnswer {
    if (this.#runs.size >= this.#limits.runsMax) return { kind: "yours" };
    const run: RunUnderWay = { runner, waiting: new Set(), renewedMono: this.#clock.monotonicMs(), cancel: () => {} };
    this.#runs.set(key, run);
    this.#watchOver(key, run);
    return { kind: "yours" };
  }

  #watchOver(key: string, run: RunUnderWay): void {
    const leftMs = run.renewedMono + this.#limits.leaseMs - this.#clock.monotonicMs();
    if (leftMs <= 0) return this.#drop(key, run, { kind: "ended" });
    run.cancel = this.#clock.after(leftMs, () => this.#watchOver(key, run));
  }

  #drop(key: string, run: RunUnderWay, answer: DeskAnswer): void {
    run.cancel();
    this.#runs.delete(key);
    for (const hear of run.waiting) hear(answer);
  }

  #wait({ waiting }: RunUnderWay, waitMs: number, signal: AbortSignal): Promise<DeskAnswer> {
    this.#waiting += 1;
    return new Promise((resolve) => {
      const hear = (answer: DeskAnswer): void => {
        if (!waiting.delete(hear)) return;
        this.#waiting -= 1;
        cancel();
        signal.removeEventListener("abort", leave);
        resolve(answer);
      };
      const leave = (): void => hear({ kind: "busy" });
      waiting.add(hear);
      const cancel = this.#clock.after(waitMs, leave);
      signal.addEventListener("abort", leave, { once: true });
    });
  }
}
