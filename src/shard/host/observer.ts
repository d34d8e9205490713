import type { Rejection } from "#kernel/model/rejection.ts";
import type { SealedBatch } from "./batch.ts";
import type { HostedShard } from "./shard.ts";
import type { Stamp } from "#shard/transport/protocol.ts";

/** Observers of a shard: projector, snapshotter. Called in order, synchronously by the host. */
export type ShardObserver = {
  adopted?(shard: HostedShard): void;
  /** The state equals the log up to `stamp`, once that is durable. */
  sealed?(shard: HostedShard, stamp: Stamp): void;
  durable?(shard: HostedShard, batch: SealedBatch): void;
  gone?(shard: HostedShard): void;
  /** A command was refused because a limit is reached. */
  refused?(shard: HostedShard, rejection: Rejection): void;
  /** A reason not to accept new work. */
  full?(shard: HostedShard): Rejection | undefined;
};
