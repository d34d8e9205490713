/**
 * Background work uses at most a quarter of the event loop's time, in steps of a fraction of a millisecond. On a busy
 * machine a thread that always has work gets only its share of the cores, so requests to it would wait for its next
 * time slice; a thread that sleeps is scheduled at once. Measured in real time, because it is the machine's time that
 * matters.
 */
import { performance } from "node:perf_hooks";

const turnMs = 0.3;
const restsPerWork = 3;
/** After a step of any length. */
const restMsMax = 20;

export type PaceTime = { readonly nowMs: () => number; readonly rest: (ms: number) => Promise<void> };

const realTime: PaceTime = {
  nowMs: () => performance.now(),
  rest: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
};

export class Pace {
  readonly #time: PaceTime;
  #hurrying = 0;
  #sinceMs = 0;

  constructor(time: PaceTime = realTime) {
    this.#time = time;
  }

  /** Yields to other work between two steps. */
  async giveWay(): Promise<void> {
    const workedMs = this.#time.nowMs() - this.#sinceMs;
    if (this.#hurrying > 0 || workedMs < turnMs) {
      await new Promise(setImmediate);
      return;
    }
    await this.#time.rest(Math.min(workedMs * restsPerWork, restMsMax));
    this.#sinceMs = this.#time.nowMs();
  }

  /** Runs without pauses: a caller waits for it. */
  async hurry<T>(work: () => Promise<T>): Promise<T> {
    this.#hurrying += 1;
    try {
      return await work();
    } finally {
      this.#hurrying -= 1;
    }
  }
}
