import { uptime } from "node:os";
import { performance } from "node:perf_hooks";
import { bootClock } from "#base/boot-clock.ts";
import type { Clock } from "#base/clock.ts";

/** Longer delays overflow Node's timers and would fire at once. */
const timerMsMax = 2 ** 31 - 1;

/** The machine's own clocks. */
export const systemClock: Clock = bootClock({
  awakeMs: () => performance.now(),
  wallMs: () => Date.now(),
  // On other systems performance.now() includes sleep, and uptime() follows the wall clock.
  bootMs: () => (process.platform === "linux" ? uptime() * 1_000 : undefined),
  after,
  afterIfUp: (ms, run) => void setTimeout(run, ms).unref(),
});

function after(ms: number, run: () => void): () => void {
  if (ms > timerMsMax) return afterLong(ms, run);
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
}

function afterLong(ms: number, run: () => void): () => void {
  let cancel = after(timerMsMax, () => {
    cancel = after(ms - timerMsMax, run);
  });
  return () => cancel();
}
