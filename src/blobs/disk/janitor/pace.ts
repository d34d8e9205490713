/**
 * Work that nobody waits for takes a quarter of the loop's time, in turns of a fraction of a millisecond. A thread that
 * always has something to do gets, on a busy machine, nothing but its share of the cores, and those who ask it
 * something wait until it is its turn again; one that rests is let in at once. By the time that really passes: it is
 * the machine that is to be spared.
 */
import { performance } from "node:perf_hooks";

const turnMs = 0.3;
const restsPerWork = 3;
/** However slow a turn was. */
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

  /** Between two pieces of work: others have their turn. */
  async giveWay(): Promise<void> {
    const workedMs = this.#time.nowMs() - this.#sinceMs;
    if (this.#hurrying > 0 || workedMs < turnMs) {
      await new Promise(setImmediate);
      return;
    }
    await this.#time.rest(Math.min(workedMs * restsPerWork, restMsMax));
    this.#sinceMs = this.#time.nowMs();
  }

  /** Until this has come to an end, somebody waits. */
  async hurry<T>(work: () => Promise<T>): Promise<T> {
    this.#hurrying += 1;
    try {
      return await work();
    } finally {
      this.#hurrying -= 1;
    }
  }
}
