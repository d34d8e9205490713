import type { WatcherLimits } from "#shard/watch/watchers.ts";

/** How much a node accepts before it answers "overloaded", and the periods of its recurring work. */
export type HostSettings = WatcherLimits & {
  /** Accepted requests that are not answered yet, and their size; per shard and per node. */
  readonly requestsMax: number;
  readonly requestBytesMax: number;
  readonly nodeRequestsMax: number;
  readonly nodeRequestBytesMax: number;
  /** Commands in one request. */
  readonly commandsMax: number;
  /** The retry delay that an overloaded node gives its callers. */
  readonly retryAfterMs: number;
  /** Executors held because there is no work for them, per shard, and for how long at most. */
  readonly waitersMax: number;
  /** Total size of held requests, in all shards of the node. */
  readonly heldBytesMax: number;
  readonly waitMsMax: number;
  readonly heartbeatMs: number;
  /** A shard ticks at least this often; a longer gap means that it was asleep (K11). */
  readonly tickMs: number;
  readonly tickMsMin: number;
  /** How long blobs named by a commit are pinned at first. */
  readonly pinMs: number;
};

const MiB = 1024 * 1024;

export const defaultHostSettings: HostSettings = {
  requestsMax: 20_000,
  requestBytesMax: 64 * MiB,
  nodeRequestsMax: 100_000,
  nodeRequestBytesMax: 256 * MiB,
  commandsMax: 1_000,
  retryAfterMs: 100,
  waitersMax: 10_000,
  heldBytesMax: 64 * MiB,
  waitMsMax: 60_000,
  watchersMax: 10_000,
  ringBatchesMax: 1_000,
  ringBytesMax: MiB,
  unreadMax: 256,
  unreadBytesMax: 4 * MiB,
  nodeUnreadBytesMax: 64 * MiB,
  heartbeatMs: 5_000,
  tickMs: 100,
  tickMsMin: 5,
  pinMs: 3_600_000,
};
