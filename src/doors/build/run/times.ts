/**
 * When each phase of an action happened, on one worker's clocks. REAPI-68: never backwards, whatever the wall clock
 * does.
 */
import type { Clock } from "#base/clock.ts";
import type { ExecutedActionMetadata } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { moments, type Moment, type Moments } from "#worker/attempt-watch.ts";
import { timestampOf } from "#doors/build/view.ts";

type StampName = `${Moment}Timestamp`;

/** The names of their fields. */
const names = moments.map((moment) => [moment, `${moment}Timestamp`] as const satisfies [Moment, StampName]);

export class Times {
  readonly #clock: Clock;
  readonly #startWallMs: number;
  readonly #startMonoMs: number;
  readonly #at: { [M in Moment]?: number };

  /** `queuedAtMs` comes from another node: it cannot have been later than now. */
  constructor(clock: Clock, queuedAtMs: number) {
    this.#clock = clock;
    this.#startWallMs = clock.wallMs();
    this.#startMonoMs = clock.monotonicMs();
    this.#at = { queued: Math.min(queuedAtMs, this.#startWallMs), workerStart: this.#startWallMs };
  }

  mark(moment: Moment): void {
    this.#at[moment] = this.#startWallMs + this.#clock.monotonicMs() - this.#startMonoMs;
  }

  /** What has happened so far, for a later process. */
  get soFar(): Moments {
    return { ...this.#at };
  }

  /** What happened in an earlier process; as long ago as it says, unless this machine's clock was set back. */
  recall(soFar: Moments): void {
    for (const moment of moments) {
      const ms = soFar[moment];
      if (typeof ms === "number") this.#at[moment] = Math.min(ms, this.#startWallMs);
    }
  }

  /** What has not happened is left out. */
  get timestamps(): Omit<ExecutedActionMetadata, "worker" | "auxiliaryMetadata"> {
    const stamps: { [T in StampName]?: ReturnType<typeof timestampOf> } = {};
    for (const [moment, name] of names) {
      const ms = this.#at[moment];
      if (ms !== undefined) stamps[name] = timestampOf(ms);
    }
    return stamps;
  }
}
