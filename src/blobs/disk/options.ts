import type { ScrubOptions } from "./check/scrubber.ts";
import type { FaultFacts } from "#base/fault.ts";
import { realSyncs, type Syncs } from "#blobs/syncs.ts";
import { uploadSharesDefault, type UploadShares } from "#blobs/upload-limits.ts";

const MiB = 1024 * 1024;

export type DiskOptions = {
  /** The hard limit for everything in the folder. */
  readonly sizeBytesMax: number;
  /** Shares of the limit: above the high one the janitor starts, at the low one it stops. */
  readonly highWatermark: number;
  readonly lowWatermark: number;
  /** A blob that was reported present stays at least this long. */
  readonly promisedMs: number;
  /** How large blobs are stored. */
  readonly compression: "none" | "zstd";
  /** For small blobs that are used often. */
  readonly memoryBytesMax: number;
  /** Blobs up to this size are packed into the log, larger ones are files. */
  readonly packedBytesMax: number;
  readonly segmentBytes: number;
  /** Limit on blobs and names: each takes up to 100 bytes of memory. */
  readonly entriesMax: number;
  /** How long an unfinished upload is kept without progress. */
  readonly uploadKeptMs: number;
  /** The same while space is short, or while its owner has reached a limit. */
  readonly uploadIdleMs: number;
  readonly uploadShares: UploadShares;
  /** How long a large file that was hashed is trusted, if it is not changed. */
  readonly trustedMs: number;
  readonly scrub: ScrubOptions;
  /** Acknowledge a write when it survives the process, or when it survives a power failure. */
  readonly sync: "written" | "synced";
  readonly syncs: Syncs;
  /** Called once when the folder was found to be removed or replaced: no write is acknowledged any more. */
  readonly onLost: () => void;
  /** For the operator's log. */
  readonly report: (what: string, facts: FaultFacts) => void;
};

export const diskOptionsDefault: DiskOptions = {
  sizeBytesMax: 64 * 1024 * MiB,
  highWatermark: 0.95,
  lowWatermark: 0.9,
  promisedMs: 3_600_000,
  compression: "none",
  memoryBytesMax: 128 * MiB,
  packedBytesMax: 64 * 1024,
  segmentBytes: 64 * MiB,
  entriesMax: 0,
  uploadKeptMs: 24 * 3_600_000,
  uploadIdleMs: 5 * 60_000,
  uploadShares: uploadSharesDefault,
  trustedMs: 14 * 24 * 3_600_000,
  scrub: { everyMs: 7 * 24 * 3_600_000, rate: 0 },
  sync: "written",
  syncs: realSyncs,
  onLost: () => {},
  report: () => {},
};

/** A store of 64 GiB takes 33 million blobs and names, which is 3 GB of memory. Builds have a tenth of that. */
const bytesPerEntryMin = 2_048;
const entriesMin = 1_000_000;

/** A small store, or one on a small disk, has small segments, so that there is always space to compact one. */
export function diskOptions(given: Partial<DiskOptions>, diskBytes: number): DiskOptions {
  const options = { ...diskOptionsDefault, ...given };
  const sixteenth = Math.min(options.sizeBytesMax, diskBytes) / 16;
  const segmentBytes = Math.min(options.segmentBytes, Math.max(MiB / 4, 2 ** Math.floor(Math.log2(sixteenth))));
  const packedBytesMax = Math.min(options.packedBytesMax, segmentBytes / 4);
  const entriesMax = given.entriesMax ?? Math.max(entriesMin, Math.floor(options.sizeBytesMax / bytesPerEntryMin));
  return { ...options, segmentBytes, packedBytesMax, entriesMax };
}
