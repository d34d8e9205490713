/**
 * A clock for stores without one: follows the wall clock forward, never goes back, and runs at the monotonic rate while
 * the wall clock is behind. Otherwise one jump into the future would stop all leases from expiring until the wall clock
 * had caught up.
 */
export type SteadyClock = {
  nowMs(): number;
  /** The clock had reached this before the store was opened. */
  atLeast(ms: number): void;
};

export function steadyClock(wallMs: () => number, monotonicMs: () => number): SteadyClock {
  let lastMs = wallMs();
  let lastMonoMs = monotonicMs();
  const nowMs = (): number => {
    const monoMs = monotonicMs();
    lastMs = Math.max(wallMs(), lastMs + (monoMs - lastMonoMs));
    lastMonoMs = monoMs;
    return Math.floor(lastMs);
  };
  return {
    nowMs,
    atLeast(ms) {
      if (nowMs() < ms) lastMs = ms;
    },
  };
}
