/**
 * Time as a port. Intervals and leases are counted on `monotonicMs`; `wallMs` is for people and never decides. The
 * simulator gives every node its own clocks, skewed and jumping.
 */
export type Clock = {
  /** Never goes backwards, and includes the time during which the machine slept: a lease keeps running meanwhile. */
  monotonicMs(): number;
  wallMs(): number;
  /** Resolves after `ms`, or rejects with the signal's reason when it is aborted first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls back once after `ms`; the returned function cancels it. */
  after(ms: number, run: () => void): () => void;
  /** Use `afterAwake` below. Left out where the machine never sleeps. */
  afterAwake?(ms: number, run: () => void): () => void;
};

/** Like `clock.after`, but pauses while the machine sleeps: for limits on work that sleeps with it. */
export const afterAwake = (clock: Clock, ms: number, run: () => void): (() => void) =>
  clock.afterAwake ? clock.afterAwake(ms, run) : clock.after(ms, run);
