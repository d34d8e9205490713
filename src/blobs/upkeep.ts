/** What whoever looks after a store wants to know of it and may ask of it. */
import type { Digest } from "#base/digest.ts";

export type StoreStat = {
  readonly blobs: number;
  /** Names: results of actions, keys of build tools. */
  readonly entries: number;
  readonly usedBytes: number;
  /** Promised to uploads that are under way. */
  readonly reservedBytes: number;
  readonly sizeBytesMax: number;
  /** What the index takes in memory. */
  readonly indexBytes: number;
  /** When the blob that would go next was last used. */
  readonly oldestUseAtMs?: number;
  /** Since the start. */
  readonly evictedBlobs: number;
  readonly evictedBytes: number;
};

/** What is known of a store at once, however much is in it. */
export type StoreFigures = {
  readonly usedBytes: number;
  readonly sizeBytesMax: number;
  /** Since the start. */
  readonly evictedBlobs: number;
  readonly evictedBytes: number;
  /** How long what was let go of last had not been used by then; 0 while nothing was. */
  readonly evictionAgeSec: number;
};

export type Verified = {
  readonly checked: number;
  readonly of: number;
  readonly bytes: number;
  /** Found since the last one was told; they are no longer there. */
  readonly wrong: readonly Digest[];
};

export type Upkeep = {
  stat(): Promise<StoreStat>;
  figures(): StoreFigures;
  /** Lets go of what was not used the longest, down to so many bytes or to what it has promised to keep. */
  evict(downToBytes: number): Promise<StoreStat>;
  /** Reads every blob against its digest, telling how far it is; what is wrong is dropped. */
  verify(signal: AbortSignal): AsyncIterable<Verified>;
};
