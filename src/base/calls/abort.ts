import type { Clock } from "#base/clock.ts";

/** The promise's outcome, or the signal's reason as soon as it is aborted; the promise itself continues. */
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

/**
 * A time limit that also ends with the outer signal. Every call has some, so there is only one timer for it, which is
 * not reset when the time is extended: it checks again when it fires.
 */
export class Deadline implements Disposable {
  readonly #clock: Clock;
  readonly #outer: AbortSignal | undefined;
  /** Called when the time is up: returns why it ends, or for how many more milliseconds it goes on. */
  readonly #over: () => Error | number;
  readonly #abort = new AbortController();
  #untilMono = Number.POSITIVE_INFINITY;
  #firesMono = Number.POSITIVE_INFINITY;
  #cancel: (() => void) | undefined;
  #letGo: ((why: unknown) => void) | undefined;
  #isOver = false;

  constructor(clock: Clock, ms: number, outer: AbortSignal | undefined, over: () => Error | number) {
    this.#clock = clock;
    this.#outer = outer;
    this.#over = over;
    outer?.addEventListener("abort", this.#stop);
    if (outer?.aborted) this.#stop();
    this.extend(ms);
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Counts again from now. */
  extend(ms: number): void {
    this.#untilMono = this.#clock.monotonicMs() + Math.max(0, ms);
    if (this.#untilMono < this.#firesMono && !this.#isOver) this.#arm(ms);
  }

  end(why: unknown): void {
    if (this.#isOver) return;
    this.#abort.abort(why);
    this.#letGo?.(why);
    this[Symbol.dispose]();
  }

  /**
   * The promise's outcome, or why the time ended if that comes first; for one caller at a time. The promise itself
   * continues.
   */
  orOver<T>(promise: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#letGo = reject;
      promise.then(resolve, reject);
      const { signal } = this.#abort;
      if (signal.aborted) reject(signal.reason as Error);
    });
  }

  /** Frees timer and listener. */
  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#cancel?.();
    this.#cancel = undefined;
    this.#outer?.removeEventListener("abort", this.#stop);
  }

  readonly #stop = (): void => this.end(this.#outer?.reason);

  #arm(ms: number): void {
    this.#cancel?.();
    this.#firesMono = this.#untilMono;
    this.#cancel = this.#clock.after(Math.max(0, ms), this.#fire);
  }

  readonly #fire = (): void => {
    // A timer may fire a little early by its own clock: count from the time that it was set for.
    const nowMono = Math.max(this.#clock.monotonicMs(), this.#firesMono);
    this.#firesMono = Number.POSITIVE_INFINITY;
    if (this.#untilMono === Number.POSITIVE_INFINITY) return;
    if (this.#untilMono > nowMono) return this.#arm(this.#untilMono - nowMono);
    const over = this.#over();
    if (typeof over === "number") this.extend(over);
    else this.end(over);
  };
}
