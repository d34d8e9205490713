/**
 * How long the attempts of a stage ran that succeeded, as a histogram: four buckets for each doubling, so that a stage
 * of a million tasks costs a few hundred bytes and a percentile is right within a fifth.
 */

export type Pace = {
  readonly counts: number[];
  /** Tasks that have, or may have, a second attempt now. */
  spares: number;
};

export const newPace = (): Pace => ({ counts: [], spares: 0 });

const bucketsPerDoubling = 4;
const bucketsMax = 128;

export function addRun({ counts }: Pace, ms: number): void {
  const bucket = ms <= 1 ? 0 : Math.min(bucketsMax - 1, Math.ceil(Math.log2(ms) * bucketsPerDoubling));
  while (counts.length <= bucket) counts.push(0);
  counts[bucket] = (counts[bucket] ?? 0) + 1;
}

/** The time within which this share of the runs ended, from 1 to 100; 0 without any runs. */
export function percentileMs({ counts }: Pace, percentile: number): number {
  const total = counts.reduce((sum, count) => sum + count, 0);
  let left = Math.ceil((total * percentile) / 100);
  for (const [bucket, count] of counts.entries()) {
    left -= count;
    if (left <= 0) return total === 0 ? 0 : 2 ** (bucket / bucketsPerDoubling);
  }
  return 0;
}
