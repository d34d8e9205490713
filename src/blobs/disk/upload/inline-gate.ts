/**
 * Whether small I/O may be done on the loop. A page that the system has in memory is read in 2 us, a trip through the
 * thread pool costs 20 to 40 us of CPU; but a disk that lets wait would hold up everybody. So it is done inline for as
 * long as that has been quick lately, and elsewhere for a while once it was not.
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

  /** Runs it and remembers what it took. */
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
/** So much of the time may be waited: a tenth. */
const paidBackPerMs = 0.1;
const debtMsMax = 50;
