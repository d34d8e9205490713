import type { Clock } from "#base/clock.ts";

/** A clock for tests: time passes only in `advance`, which runs everything that falls due. */
export class ManualClock implements Clock {
  #nowMs: number;
  #order = 0;
  /** By how much the wall clock was set forward; negative: back. */
  wallAheadMs = 0;
  #timers: { readonly atMs: number; readonly order: number; readonly run: () => void }[] = [];

  constructor(nowMs = 1_000_000) {
    this.#nowMs = nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#nowMs + this.wallAheadMs;
  }

  after(ms: number, run: () => void): () => void {
    const timer = { atMs: this.#nowMs + Math.max(0, ms), order: (this.#order += 1), run };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    if (signal?.aborted) return Promise.reject(signal.reason as Error);
    const stop = () => {
      cancel();
      reject(signal?.reason as Error);
    };
    const cancel = this.after(ms, () => {
      signal?.removeEventListener("abort", stop);
      resolve();
    });
    signal?.addEventListener("abort", stop, { once: true });
    return promise;
  }

  /** How many timers are pending, so that a test can detect a leak. */
  get pending(): number {
    return this.#timers.length;
  }

  /** Lets `ms` pass, timer by timer; between two of them all pending promises settle. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    await settle();
    for (;;) {
      const due = this.#timers
        .filter(({ atMs }) => atMs <= untilMs)
        .sort((a, b) => a.atMs - b.atMs || a.order - b.order)[0];
      if (!due) break;
      this.#timers = this.#timers.filter((other) => other !== due);
      this.#nowMs = Math.max(this.#nowMs, due.atMs);
      due.run();
      await settle();
    }
    this.#nowMs = untilMs;
    await settle();
  }
}

/** Long enough for a chain of awaits and async generators to settle; does not wait for real time. */
export async function settle(turns = 200): Promise<void> {
  for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
}
