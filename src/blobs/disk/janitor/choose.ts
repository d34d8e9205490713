/** Chooses what the janitor evicts: pure, and a slice at a time, because there may be millions of entries. */
import type { Table } from "#blobs/disk/table/table.ts";

export type Guards = {
  readonly nowSec: number;
  /** Blobs used since then were promised to a caller. */
  readonly promisedSinceSec: number;
};

/** Neither pinned nor promised. */
export const isEvictable = (table: Table, entry: number, { nowSec, promisedSinceSec }: Guards): boolean =>
  table.isTaken(entry) && table.keepSec(entry) <= nowSec && table.accessSec(entry) < promisedSinceSec;

const bucketCount = 4_096;

/** Counts, by time of last use, how many bytes evicting everything up to then would free. */
export class AgeSurvey {
  readonly #fromSec: number;
  readonly #bucketSec: number;
  readonly #bytes = new Float64Array(bucketCount);
  evictableBytes = 0;

  /** `oldestSec` need not be exact: older entries count as that old. */
  constructor(oldestSec: number, nowSec: number) {
    this.#fromSec = oldestSec;
    this.#bucketSec = Math.max(1, Math.ceil((nowSec - oldestSec + 1) / bucketCount));
  }

  add(accessSec: number, bytes: number): void {
    const bucket = Math.max(0, Math.floor((accessSec - this.#fromSec) / this.#bucketSec));
    this.#bytes[Math.min(bucketCount - 1, bucket)]! += bytes;
    this.evictableBytes += bytes;
  }

  /** Evicting everything last used before this time frees the wanted bytes, and at most one bucket more. */
  cutOffSec(wantedBytes: number): number {
    let sum = 0;
    for (const [bucket, bytes] of this.#bytes.entries()) {
      sum += bytes;
      if (sum >= wantedBytes) return this.#fromSec + (bucket + 1) * this.#bucketSec;
    }
    return Number.POSITIVE_INFINITY;
  }
}

/** How much of a segment is live. */
export type SegmentUse = { readonly number: number; readonly sizeBytes: number; readonly liveBytes: number };

/** The segments to compact, best ratio of freed to copied bytes first. */
export function worthTidying(
  segments: readonly SegmentUse[],
  wantedBytes: number,
  deadShareMin: number,
): readonly number[] {
  const share = ({ sizeBytes, liveBytes }: SegmentUse): number => (sizeBytes - liveBytes) / Math.max(1, sizeBytes);
  const chosen: number[] = [];
  let freed = 0;
  for (const segment of segments.toSorted((a, b) => share(b) - share(a))) {
    if (freed >= wantedBytes && share(segment) < 0.5) break;
    if (share(segment) < deadShareMin) break;
    chosen.push(segment.number);
    freed += segment.sizeBytes - segment.liveBytes;
  }
  return chosen;
}
