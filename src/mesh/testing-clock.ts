/** The machine's own clock, for tests on real sockets. */
import { performance } from "node:perf_hooks";
import type { Clock } from "#base/clock.ts";

export const realClock: Clock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};
