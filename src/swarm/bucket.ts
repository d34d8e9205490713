/**
 * A token bucket that may go below zero by the last thing taken: whole units are sent, and the debt is waited for.
 * It saves up `burstMs` of its rate at most.
 */
export class Bucket {
  #bytesPerMs: number;
  readonly #burstMs: number;
  #tokens = 0;
  #atMs: number;

  constructor(bytesPerSecond: number, burstMs: number, nowMs: number) {
    this.#bytesPerMs = bytesPerSecond / 1_000;
    this.#burstMs = burstMs;
    this.#atMs = nowMs;
  }

  set(bytesPerSecond: number, nowMs: number): void {
    this.#refill(nowMs);
    this.#bytesPerMs = bytesPerSecond / 1_000;
    this.#tokens = Math.min(this.#tokens, this.#bytesPerMs * this.#burstMs);
  }

  /** 0: now. Infinity: not until the rate is changed. */
  waitMs(nowMs: number): number {
    this.#refill(nowMs);
    return this.#tokens >= 0 ? 0 : -this.#tokens / this.#bytesPerMs;
  }

  take(bytes: number): void {
    if (this.#bytesPerMs !== Infinity) this.#tokens -= bytes;
  }

  #refill(nowMs: number): void {
    if (this.#bytesPerMs === Infinity) this.#tokens = 0;
    // A rate of nothing lets nothing through, not even what was saved up.
    else if (this.#bytesPerMs <= 0) this.#tokens = Math.min(this.#tokens, -1);
    else {
      if (nowMs > this.#atMs) this.#tokens += (nowMs - this.#atMs) * this.#bytesPerMs;
      this.#tokens = Math.min(this.#tokens, this.#bytesPerMs * this.#burstMs);
    }
    this.#atMs = Math.max(this.#atMs, nowMs);
  }
}
