/**
 * A store's clock where the store has none of its own: follows the wall clock forward, never goes back, and goes
 * on at the monotonic rate while the wall clock is behind; else one jump into the future would stop all leases
 * from running out until the world had caught up.
 */
export type SteadyClock = {
  nowMs(): number;
  /** The clock has been here before, in another life of the store. */
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
