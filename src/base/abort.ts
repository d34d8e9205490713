import type { Clock } from "./clock.ts";

/** The promise's outcome, or the signal's reason as soon as it is aborted; the promise goes on by itself. */
export async function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const stop = (): void => aborted.reject(signal.reason as Error);
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

export type DeadlineSignal = Disposable & {
  readonly signal: AbortSignal;
  /** Counts anew from now. */
  extend(ms: number): void;
};

/** A signal of its own that is aborted by the outer one or after the time; disposing of it frees timer and listener. */
export function deadlineSignal(
  clock: Clock,
  ms: number,
  outer: AbortSignal | undefined,
  reason: () => Error,
): DeadlineSignal {
  const abort = new AbortController();
  const stop = (): void => abort.abort(outer?.reason);
  if (outer?.aborted) stop();
  outer?.addEventListener("abort", stop, { once: true });
  const arm = (afterMs: number): (() => void) =>
    Number.isFinite(afterMs) ? clock.after(Math.max(0, afterMs), () => abort.abort(reason())) : () => {};
  let cancel = arm(ms);
  return {
    signal: abort.signal,
    extend(afterMs) {
      cancel();
      cancel = arm(afterMs);
    },
    [Symbol.dispose]() {
      cancel();
      outer?.removeEventListener("abort", stop);
    },
  };
}
