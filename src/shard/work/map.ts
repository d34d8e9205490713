/** The partition map as a message of the work protocol, and back. */
import type { Cluster, NodeSeen, Ownership } from "#journal/journal.ts";
import type { GetPartitionMapResponse } from "#wire/generated/millrace/work/v1/queries.ts";

/** What a client needs to know of the cluster, from any source. */
export type PartitionMap = {
  readonly cluster: Pick<Cluster, "clusterId" | "shards">;
  readonly ownerships: readonly Ownership[];
  readonly nodes: readonly Pick<NodeSeen, "node" | "address" | "state" | "alive" | "seenAgoMs">[];
};

export const writeMap = ({ cluster, ownerships, nodes }: PartitionMap): GetPartitionMapResponse => ({
  clusterId: cluster.clusterId,
  shards: cluster.shards,
  ownerships: ownerships.map((one) => ({ ...one, remainingMs: Math.floor(one.remainingMs) })),
  nodes: nodes.map(({ node, address, state, alive, seenAgoMs }) => ({
    node,
    address,
    leaving: state === "leaving",
    alive,
    seenAgoMs: Math.ceil(seenAgoMs),
  })),
});

export const readMap = ({ clusterId, shards, ownerships, nodes }: GetPartitionMapResponse): PartitionMap => ({
  cluster: { clusterId, shards },
  ownerships: ownerships.map(({ shard, epoch, owner, address, remainingMs }) => ({
    shard,
    epoch,
    owner,
    address,
    remainingMs,
  })),
  nodes: nodes.map(({ node, address, leaving, alive, seenAgoMs }) => ({
    node,
    address,
    state: leaving ? "leaving" : "up",
    alive,
    seenAgoMs,
  })),
});
