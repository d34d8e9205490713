/** How long a queue takes to drain, from how long its last jobs took. Pure. */

/** How much the newest job counts. */
const newestShare = 0.1;
const classesMax = 200;

export class DrainEstimate {
  /** By what jobs ask for: the mean of how long they took, newer ones counting more. */
  readonly #meanMs = new Map<string, number>();

  ended(runsOn: string, tookMs: number): void {
    const mean = this.#meanMs.get(runsOn);
    if (mean === undefined && this.#meanMs.size >= classesMax) return;
    this.#meanMs.set(runsOn, mean === undefined ? tookMs : mean + (tookMs - mean) * newestShare);
  }

  /** As many at once as run now, or one where none does. 0 where no such job has ended yet. */
  seconds(runsOn: string, queued: number, running: number): number {
    return (queued * (this.#meanMs.get(runsOn) ?? 0)) / Math.max(1, running) / 1_000;
  }
}
