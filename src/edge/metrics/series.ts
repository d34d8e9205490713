/**
 * Counters, gauges and histograms. A series is bound once, at start or on first use; an observation is then a few
 * additions.
 */
import { assert } from "#base/assert.ts";

/** Never decreases. */
export class Counter {
  value = 0;

  add(by = 1): void {
    if (by >= 0) this.value += by; // a counter that decreases would be read as a restart
  }
}

export class Gauge {
  value = 0;

  set(value: number): void {
    this.value = value;
  }

  add(by = 1): void {
    this.value += by;
  }
}

/** How often a value fell into each of a few fixed ranges. */
export class Histogram {
  readonly bounds: readonly number[];
  /** By range, not cumulative; the last one is above all bounds. */
  readonly counts: Float64Array;
  sum = 0;

  constructor(bounds: readonly number[]) {
    assert(
      bounds.length > 0 && bounds.every((bound, at) => at === 0 || bound > (bounds[at - 1] ?? Infinity)),
      "a histogram's bounds grow",
    );
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    if (Number.isNaN(value)) return;
    const { bounds, counts } = this;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] as number)) at += 1;
    counts[at] = (counts[at] as number) + 1;
    this.sum += value;
  }
}
