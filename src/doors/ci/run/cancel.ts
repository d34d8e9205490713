/** When a job is cancelled: from outside, or by its own time; and how long cancelling may take (CI-11, CI-14). */

export type CancelWatch = {
  readonly timeoutMinutes: number;
  readonly cancelTimeoutMinutes: number;
  readonly signal: AbortSignal;
  readonly onTimeout: () => void;
  readonly onCancel: () => void;
  /** The time for cancelling is over. */
  readonly onKill: () => void;
};

const minuteMs = 60_000;
const timerMsMax = 2 ** 31 - 1;

export const timerMs = (minutes: number): number => Math.min(Math.max(0, minutes * minuteMs), timerMsMax);

export function watchCancel(watch: CancelWatch): Disposable {
  const timers: NodeJS.Timeout[] = [];
  let isCancelled = false;
  const after = (minutes: number, act: () => void): void => {
    if (Number.isFinite(minutes)) timers.push(setTimeout(act, timerMs(minutes)));
  };
  const cancel = (): void => {
    if (isCancelled) return;
    isCancelled = true;
    watch.onCancel();
    after(watch.cancelTimeoutMinutes, watch.onKill);
  };
  after(watch.timeoutMinutes, () => {
    watch.onTimeout();
    cancel();
  });
  if (watch.signal.aborted) cancel();
  else watch.signal.addEventListener("abort", cancel, { once: true });
  return {
    [Symbol.dispose]: () => {
      watch.signal.removeEventListener("abort", cancel);
      for (const timer of timers) clearTimeout(timer);
    },
  };
}
