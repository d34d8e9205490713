/** The machine's own time. */
import { setTimeout as pause } from "node:timers/promises";
import type { Clock } from "#base/clock.ts";

export const agentClock: Clock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  async sleep(ms, signal) {
    await pause(ms, undefined, signal ? { signal } : {});
  },
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};
