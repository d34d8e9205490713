/** Follows attempts as a worker runs them, for metrics and traces. */
import type { BlobStore } from "#blobs/store.ts";
import type { Granted } from "#shard/client/executor.ts";

/** What happens to an attempt, in this order; what its kind of task does not do is left out. */
export const moments = [
  "queued",
  "workerStart",
  "inputFetchStart",
  "inputFetchCompleted",
  "executionStart",
  "executionCompleted",
  "outputUploadStart",
  "outputUploadCompleted",
  "workerCompleted",
] as const;

export type Moment = (typeof moments)[number];

/** In wall-clock milliseconds. */
export type Moments = Readonly<Partial<Record<Moment, number>>>;

export type AttemptWatch = {
  /** Called at the start of each attempt, with the store that it would use. */
  begin(task: Granted, blobs: BlobStore): WatchedAttempt;
};

export type WatchedAttempt = {
  /** The store as the attempt is to use it. */
  readonly blobs: BlobStore;
  /** Nothing of the attempt runs any more. */
  ended(moments: Moments): void;
};
