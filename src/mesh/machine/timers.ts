/** A queue of timers. Time is passed in; equal times keep the order in which they were set. */

type Timer = { readonly atMs: number; readonly order: number; run: (() => void) | undefined };

export type Cancel = () => void;

export class Timers {
  readonly #heap: Timer[] = [];
  #order = 0;
  #isClosed = false;

  set(atMs: number, run: () => void): Cancel {
    if (this.#isClosed) return () => {};
    const timer: Timer = { atMs, order: (this.#order += 1), run };
    this.#heap.push(timer);
    this.#rise(this.#heap.length - 1);
    return () => {
      timer.run = undefined;
    };
  }

  /** When the next one is due; infinite if there is none. */
  nextAtMs(): number {
    for (let top = this.#heap[0]; top; top = this.#heap[0]) {
      if (top.run) return top.atMs;
      this.#pop();
    }
    return Number.POSITIVE_INFINITY;
  }

  /** Takes one that is due with its time, so that the caller can set the clock before each. */
  take(nowMs: number): { readonly atMs: number; readonly run: () => void } | undefined {
    if (this.nextAtMs() > nowMs) return undefined;
    const { atMs, run } = this.#pop() as Timer;
    return run && { atMs, run };
  }

  /** Cancels all timers for good. */
  close(): void {
    this.#isClosed = true;
    this.#heap.length = 0;
  }

  #pop(): Timer | undefined {
    const top = this.#heap[0];
    const last = this.#heap.pop();
    if (last && this.#heap.length > 0) {
      this.#heap[0] = last;
      this.#sink(0);
    }
    return top;
  }

  #rise(from: number): void {
    for (let at = from; at > 0;) {
      const above = (at - 1) >> 1;
      if (!this.#swapIfBefore(at, above)) return;
      at = above;
    }
  }

  #sink(from: number): void {
    for (let at = from; ;) {
      const left = 2 * at + 1;
      const below = this.#isBefore(left + 1, left) ? left + 1 : left;
      if (!this.#swapIfBefore(below, at)) return;
      at = below;
    }
  }

  #isBefore(a: number, b: number): boolean {
    const one = this.#heap[a];
    const other = this.#heap[b];
    return one !== undefined && other !== undefined && (one.atMs - other.atMs || one.order - other.order) < 0;
  }

  #swapIfBefore(a: number, b: number): boolean {
    if (!this.#isBefore(a, b)) return false;
    const heap = this.#heap;
    [heap[a], heap[b]] = [heap[b] as Timer, heap[a] as Timer];
    return true;
  }
}
