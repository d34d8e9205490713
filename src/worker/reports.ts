/** Reports an attempt's steps to its shard: in order, in batches, without delaying the attempt. */
import type { Clock } from "#base/clock.ts";
import { isFault } from "#base/fault.ts";
import type { Step } from "#kernel/model/model.ts";
import type { ExecutorClient } from "#shard/client/executor.ts";
import { isRejected } from "#shard/work/rejected.ts";
import type { Holding } from "./holding.ts";

const gatherMs = 200;
const stepsAtOnce = 100;
/** A runner that reports without end loses the oldest progress, never a start or an end. */
const unsentMax = 1_000;

export class Reports {
  readonly #client: Pick<ExecutorClient, "report">;
  readonly #clock: Clock;
  readonly #holding: Holding;
  #unsent: Step[] = [];
  #sending: Promise<void> | undefined;
  readonly #hurry = new AbortController();

  constructor(client: Pick<ExecutorClient, "report">, clock: Clock, holding: Holding) {
    this.#client = client;
    this.#clock = clock;
    this.#holding = holding;
  }

  add(step: Step): void {
    if (this.#unsent.length >= unsentMax) {
      const progress = this.#unsent.findIndex(({ status }) => status === "progress");
      this.#unsent.splice(Math.max(0, progress), 1);
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
    const { signal, claim } = this.#holding;
    await this.#clock.sleep(gatherMs, this.#hurry.signal).catch(() => {});
    while (this.#unsent.length > 0 && !signal.aborted) {
      const steps = this.#unsent.splice(0, stepsAtOnce);
      try {
        await this.#client.report(claim, steps, { deadlineMs: Math.max(1_000, this.#holding.leftMs), signal });
      } catch (error) {
        if (isRejected(error, "token-stale")) this.#holding.stop("lost");
        else if (!signal.aborted && !isFault(error) && !isRejected(error)) throw error;
        // Progress is best effort: it is not retried.
      }
    }
    this.#sending = undefined;
  }
}
