/**
 * A clock that runs on while the machine sleeps. The monotonic clock of Linux stops then; a lease counted on it would
 * seem valid after the machine woke, long after another node took over (K8, W1). On this clock a machine that slept
 * looks like a process that was stopped: the time has passed, and the timers are overdue (ADR 0037).
 *
 * The boot clock counts sleep, but takes microseconds to read. So each reading compares the awake clock with the wall
 * clock, which is cheap. Only when the two have moved apart does the boot clock decide whether the machine slept or the
 * wall clock was set, which is ignored (K11). If the wall clock was set back by exactly the time of a sleep, the next
 * periodic check finds it.
 */
import type { Clock } from "./clock.ts";

export type MachineClocks = {
  /** Never goes backwards. May stop while the machine sleeps; then its timers stop too. */
  awakeMs(): number;
  wallMs(): number;
  /** Counts sleep, in steps of at most `stepMs`. Undefined where the awake clock counts it already. */
  bootMs(): number | undefined;
  after(ms: number, run: () => void): () => void;
  /** Like `after`, but does not keep the process alive. */
  afterIfUp(ms: number, run: () => void): void;
};

/** The boot clock of Linux, as a process can read it without native code, has two decimals. */
const stepMs = 10;
/** How far the wall clock may move against the awake clock, between two readings, before the boot clock is read. */
const movedMsMax = 20;
/** How late a timer can be after the machine slept, in time awake. */
const lookEveryMsDefault = 100;

type Timer = { readonly dueMs: number; readonly fire: () => void; cancel: () => void };

export function bootClock(machine: MachineClocks, lookEveryMs = lookEveryMsDefault): Clock {
  let sleptMs = 0;
  let isLooking = false;
  const timers = new Set<Timer>();
  const bootAheadMs = read(machine);
  let wallAheadMs = machine.wallMs() - machine.awakeMs();

  const look = (): void => {
    const aheadMs = read(machine);
    wallAheadMs = machine.wallMs() - machine.awakeMs();
    if (aheadMs - bootAheadMs - sleptMs <= 2 * stepMs) return;
    sleptMs = aheadMs - bootAheadMs;
    // Not at once: a caller that reads the time does not expect other code to run.
    machine.after(0, catchUp);
  };
  const monotonicMs = (): number => {
    const awakeMs = machine.awakeMs();
    const movedMs = machine.wallMs() - awakeMs - wallAheadMs;
    if (movedMs > movedMsMax || movedMs < -movedMsMax) look();
    return awakeMs + sleptMs;
  };
  /** The machine's timers were stopped: each is set again for the time left, in the order in which they are due. */
  const catchUp = (): void => {
    const nowMs = monotonicMs();
    for (const timer of [...timers].toSorted((a, b) => a.dueMs - b.dueMs)) {
      timer.cancel();
      timer.cancel = machine.after(Math.max(0, timer.dueMs - nowMs), timer.fire);
    }
  };
  const lookOn = (): void => {
    look();
    isLooking = timers.size > 0;
    if (isLooking) machine.afterIfUp(lookEveryMs, lookOn);
  };
  const after = (ms: number, run: () => void): (() => void) => {
    // A timer this short would not be later without this.
    if (!(ms > lookEveryMs)) return machine.after(ms, run);
    const fire = (): void => {
      timers.delete(timer);
      run();
    };
    const timer: Timer = { dueMs: monotonicMs() + ms, fire, cancel: machine.after(ms, fire) };
    timers.add(timer);
    if (!isLooking) {
      isLooking = true;
      machine.afterIfUp(lookEveryMs, lookOn);
    }
    return () => {
      timers.delete(timer);
      timer.cancel();
    };
  };
  const afterAwake = (ms: number, run: () => void): (() => void) => machine.after(ms, run);
  return { monotonicMs, wallMs: () => machine.wallMs(), after, afterAwake, sleep: sleeper(after) };
}

/** How far the boot clock is ahead of the awake clock. */
function read(machine: MachineClocks): number {
  for (let tries = 1; ; tries += 1) {
    const awakeMs = machine.awakeMs();
    const bootMs = machine.bootMs();
    if (bootMs === undefined) return 0;
    // If the process was stopped between the two readings, that would look like a sleep.
    if (tries === 3 || machine.awakeMs() - awakeMs < stepMs) return bootMs - awakeMs;
  }
}

const sleeper =
  (after: Clock["after"]): Clock["sleep"] =>
  (ms, signal) => {
    if (signal?.aborted) return Promise.reject(signal.reason as Error);
    return new Promise((resolve, reject) => {
      const stop = (): void => {
        cancel();
        reject(signal?.reason as Error);
      };
      const cancel = after(ms, () => {
        signal?.removeEventListener("abort", stop);
        resolve();
      });
      signal?.addEventListener("abort", stop, { once: true });
    });
  };
