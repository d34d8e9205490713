import { performance } from "node:perf_hooks";
import type { Clock } from "#base/clock.ts";

/** Longer delays overflow Node's timers and would fire at once. */
const timerMsMax = 2 ** 31 - 1;

/** The machine's own clocks. */
export const systemClock: Clock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  after(ms, run) {
    if (ms > timerMsMax) return afterLong(ms, run);
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
  sleep(ms, signal) {
    if (signal?.aborted) return Promise.reject(signal.reason as Error);
    return new Promise((resolve, reject) => {
      const stop = (): void => {
        cancel();
        reject(signal?.reason as Error);
      };
      const cancel = systemClock.after(ms, () => {
        signal?.removeEventListener("abort", stop);
        resolve();
      });
      signal?.addEventListener("abort", stop, { once: true });
    });
  },
};

function afterLong(ms: number, run: () => void): () => void {
  let cancel = systemClock.after(timerMsMax, () => {
    cancel = systemClock.after(ms - timerMsMax, run);
  });
  return () => cancel();
}
