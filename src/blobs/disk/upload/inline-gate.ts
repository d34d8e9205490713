/**
 * Decides whether small I/O runs synchronously. Reading a cached page takes 2 us, while the thread pool costs 20 to 40
 * us of CPU; but a slow disk would block the event loop. So I/O runs inline while it has been fast recently, and in the
 * thread pool for a while after it was slow.
 */
export class InlineGate {
  readonly #now: () => number;
  #debtMs = 0;
  #atMs = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  isOpen(): boolean {
    if (this.#debtMs === 0) return true;
    const nowMs = this.#now();
    this.#debtMs = Math.max(0, this.#debtMs - (nowMs - this.#atMs) * paidBackPerMs);
    this.#atMs = nowMs;
    return this.#debtMs < debtMsMax;
  }

  /** Runs it and records how long it took. */
  run<T>(work: () => T): T {
    const fromMs = this.#now();
    try {
      return work();
    } finally {
      const tookMs = this.#now() - fromMs;
      if (tookMs > quickMs) {
        this.isOpen();
        this.#debtMs += tookMs;
        this.#atMs = fromMs + tookMs;
      }
    }
  }
}

const quickMs = 1;
/** The share of time that may be spent waiting: a tenth. */
const paidBackPerMs = 0.1;
const debtMsMax = 50;
