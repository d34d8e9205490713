import type { Rejection } from "#kernel/model/rejection.ts";
import type { SealedBatch } from "./batch.ts";
import type { HostedShard } from "./shard.ts";
import type { Stamp } from "#shard/transport/protocol.ts";

/** Others who follow what a shard does: projector, snapshotter. Called in order, in the host's own turn. */
export type ShardObserver = {
  adopted?(shard: HostedShard): void;
  /** The state holds exactly what the log will hold up to `stamp`, once that is durable. */
  sealed?(shard: HostedShard, stamp: Stamp): void;
  durable?(shard: HostedShard, batch: SealedBatch): void;
  gone?(shard: HostedShard): void;
  /** A command was refused because something is full. */
  refused?(shard: HostedShard, rejection: Rejection): void;
  /** A reason why no new work is taken in. */
  full?(shard: HostedShard): Rejection | undefined;
};
