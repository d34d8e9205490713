/** Time as it passes, for tests of this room that start real processes. */
import type { Clock } from "#base/clock.ts";

export const realClock: Clock = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
  async sleep(ms, signal) {
    const { setTimeout: wait } = await import("node:timers/promises");
    await wait(ms, undefined, signal ? { signal } : {});
  },
};
