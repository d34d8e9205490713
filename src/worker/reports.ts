/** Reports an attempt's steps to its shard: in order, in batches, without delaying the attempt. */
import type { Clock } from "#base/clock.ts";
import { isFault } from "#base/fault.ts";
import type { Step } from "#kernel/model/model.ts";
import type { ExecutorClient } from "#shard/client/executor.ts";
import { isRejected } from "#shard/work/rejected.ts";
import type { Holding } from "./holding.ts";
import { impolite } from "./process.ts";

const gatherMs = 200;
const stepsAtOnce = 100;
/** A runner that reports without end loses the oldest progress, never a start or an end: those wait, and it waits. */
const unsentMax = 1_000;
const againMs = 500;
/** When the attempt has ended, a shard that takes no steps delays its end only this often. */
const lateTriesMax = 10;

export class Reports {
  readonly #client: Pick<ExecutorClient, "report">;
  readonly #clock: Clock;
  readonly #holding: Holding;
  #unsent: Step[] = [];
  #sending: Promise<void> | undefined;
  readonly #hurry = new AbortController();
  /** The claim is gone. An attempt that was only asked to stop still reports its steps. */
  readonly #gone = new AbortController();

  constructor(client: Pick<ExecutorClient, "report">, clock: Clock, holding: Holding) {
    this.#client = client;
    this.#clock = clock;
    this.#holding = holding;
    const stop = (): void => {
      if (holding.stopped !== undefined && impolite.includes(holding.stopped)) this.#gone.abort();
    };
    holding.signal.addEventListener("abort", stop, { once: true });
    stop();
  }

  add(step: Step): void {
    if (this.#unsent.length >= unsentMax) {
      const progress = this.#unsent.findIndex(({ status }) => status === "progress");
      if (progress >= 0) this.#unsent.splice(progress, 1);
      else if (step.status === "progress") return;
    }
    this.#unsent.push(step);
    this.#sending ??= this.#send();
  }

  /** Resolves when everything was reported, or cannot be. Later steps are ignored. */
  async flush(): Promise<void> {
    if (!this.#sending) return;
    this.#hurry.abort();
    await this.#sending;
  }

  async #send(): Promise<void> {
    const { claim } = this.#holding;
    const { signal } = this.#gone;
    let lateTries = 0;
    await this.#clock.sleep(gatherMs, this.#hurry.signal).catch(() => {});
    while (this.#unsent.length > 0 && !signal.aborted && this.#holding.leftMs > 0) {
      const steps = this.#unsent.splice(0, stepsAtOnce);
      try {
        await this.#client.report(claim, steps, { deadlineMs: Math.max(1_000, this.#holding.leftMs), signal });
      } catch (error) {
        if (isRejected(error, "token-stale")) {
          this.#holding.stop("lost");
          break;
        }
        if (!signal.aborted && !isFault(error) && !isRejected(error)) throw error;
        // Progress is best effort. That a step began or ended is sent again, unless the shard will never take it.
        if (isRejected(error, "limit") || isRejected(error, "invalid") || isRejected(error, "task-unknown")) continue;
        this.#unsent.unshift(...steps.filter(({ status }) => status !== "progress"));
        if (this.#hurry.signal.aborted && (lateTries += 1) > lateTriesMax) break;
        await this.#clock.sleep(againMs, signal).catch(() => {});
      }
    }
    this.#sending = undefined;
  }
}
