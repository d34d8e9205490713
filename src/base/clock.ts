/**
 * Time as a port. Intervals and leases are counted on `monotonicMs`; `wallMs` is for people and never decides.
 * The simulator gives every node clocks of its own, skewed and jumping.
 */
export type Clock = {
  /** Never goes backwards, and counts the time when the machine slept: a lease goes on running out meanwhile. */
  monotonicMs(): number;
  wallMs(): number;
  /** Resolves after `ms`, or rejects with the signal's reason when it is aborted first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls back once after `ms`; the returned function cancels it. */
  after(ms: number, run: () => void): () => void;
  /** Use `afterAwake` below. Left out where the machine never sleeps. */
  afterAwake?(ms: number, run: () => void): () => void;
};

/** As `clock.after`, but put off while the machine sleeps: for limits on work that sleeps with it. */
export const afterAwake = (clock: Clock, ms: number, run: () => void): (() => void) =>
  clock.afterAwake ? clock.afterAwake(ms, run) : clock.after(ms, run);
