/** What an operator can ask about a store, and ask it to do. */
import type { Digest } from "#base/digest.ts";

export type StoreStat = {
  readonly blobs: number;
  /** Entries of the action index: results of actions, keys of build tools. */
  readonly entries: number;
  readonly usedBytes: number;
  /** Reserved for uploads in progress. */
  readonly reservedBytes: number;
  readonly sizeBytesMax: number;
  /** Memory used by the index. */
  readonly indexBytes: number;
  /** Last use of the blob that would be evicted next. */
  readonly oldestUseAtMs?: number;
  /** Since the node started. */
  readonly evictedBlobs: number;
  readonly evictedBytes: number;
  /** Damaged blobs that were found and dropped. */
  readonly damagedBlobs: number;
  /** When the scrubber last read the whole store; left out if it never did. */
  readonly scrubbedAtMs?: number;
};

/** Figures that need no scan of the store. */
export type StoreFigures = {
  readonly usedBytes: number;
  readonly sizeBytesMax: number;
  /** Since the node started. */
  readonly evictedBlobs: number;
  readonly evictedBytes: number;
  /** How long the last evicted blob had been unused; 0 if none was evicted. */
  readonly evictionAgeSec: number;
  /** Bytes of large files that were hashed again, for a read, an upload or by the scrubber. */
  readonly checkedBytes: number;
  /** Damaged blobs that were found and dropped. */
  readonly damagedBlobs: number;
  readonly scrub: ScrubState;
};

/** The scrubber's present pass, or its last one while it waits for the next. */
export type ScrubState = {
  /** The next entry to check; 0 between two passes. */
  readonly position: number;
  readonly beganAtMs: number;
  /** Of the last complete pass; 0 if there was none. */
  readonly endedAtMs: number;
  readonly blobs: number;
  readonly bytes: number;
  readonly wrong: number;
};

export type Verified = {
  readonly checked: number;
  readonly of: number;
  readonly bytes: number;
  /** Blobs found wrong since the previous report; they have been dropped. */
  readonly wrong: readonly Digest[];
};

export type Upkeep = {
  stat(): Promise<StoreStat>;
  figures(): StoreFigures;
  /** Evicts the blobs unused the longest, down to so many bytes or to what the store promised to keep. */
  evict(downToBytes: number): Promise<StoreStat>;
  /** Reads every blob, compares it with its digest and drops wrong ones; yields its progress. */
  verify(signal: AbortSignal): AsyncIterable<Verified>;
};
