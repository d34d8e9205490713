import type { FaultFacts } from "#base/fault.ts";
import { realSyncs, type Syncs } from "#blobs/syncs.ts";
import { uploadSharesDefault, type UploadShares } from "#blobs/upload-limits.ts";

const MiB = 1024 * 1024;

export type DiskOptions = {
  /** The hard limit for everything in the folder. */
  readonly sizeBytesMax: number;
  /** Shares of it: above the high one the janitor begins, at the low one it is content. */
  readonly highWatermark: number;
  readonly lowWatermark: number;
  /** What was said to be there is there for so long at least. */
  readonly promisedMs: number;
  /** How large blobs are kept. */
  readonly compression: "none" | "zstd";
  /** For small blobs that are used often. */
  readonly memoryBytesMax: number;
  /** Blobs up to this size are packed into the log, larger ones are files. */
  readonly packedBytesMax: number;
  readonly segmentBytes: number;
  /** Blobs and names: each takes up to 100 bytes of memory. */
  readonly entriesMax: number;
  /** How long an upload may rest before what came of it is forgotten. */
  readonly uploadKeptMs: number;
  /** The same while room is short, or while its owner has reached a limit. */
  readonly uploadIdleMs: number;
  readonly uploadShares: UploadShares;
  /** When a write is acknowledged: when it outlives the process, or when it outlives a loss of power. */
  readonly sync: "written" | "synced";
  readonly syncs: Syncs;
  /** Told once when the folder was found to be removed or replaced: nothing is acknowledged any more. */
  readonly onLost: () => void;
  /** Told of what people should know. */
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
  sync: "written",
  syncs: realSyncs,
  onLost: () => {},
  report: () => {},
};

/** A store of 64 GiB takes 33 million blobs and names, which is 3 GB of memory. Builds have a tenth of that. */
const bytesPerEntryMin = 2_048;
const entriesMin = 1_000_000;

/** A small store, or one on a small disk, has small segments, so that there is always room to tidy one up. */
export function diskOptions(given: Partial<DiskOptions>, diskBytes: number): DiskOptions {
  const options = { ...diskOptionsDefault, ...given };
  const sixteenth = Math.min(options.sizeBytesMax, diskBytes) / 16;
  const segmentBytes = Math.min(options.segmentBytes, Math.max(MiB / 4, 2 ** Math.floor(Math.log2(sixteenth))));
  const packedBytesMax = Math.min(options.packedBytesMax, segmentBytes / 4);
  const entriesMax = given.entriesMax ?? Math.max(entriesMin, Math.floor(options.sizeBytesMax / bytesPerEntryMin));
  return { ...options, segmentBytes, packedBytesMax, entriesMax };
}
