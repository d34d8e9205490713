/** Serves /v1/cluster. */
import { route, type Route } from "#http/route.ts";
import type { WorkClient } from "#shard/client/client.ts";
import type { NodeStatus } from "#shard/node-status.ts";
import { showCluster, showNode } from "#api/cluster.ts";

export type ClusterPorts = {
  readonly name: string;
  readonly work: Pick<WorkClient, "cluster" | "nodes" | "shards">;
  readonly status: () => NodeStatus;
};

export const clusterRoutes = ({ name, work, status }: ClusterPorts): readonly Route[] => [
  route(showCluster, async () => {
    const [{ clusterId }, nodes, shards] = await Promise.all([work.cluster(), work.nodes(), work.shards()]);
    return {
      body: {
        cluster: clusterId,
        node: name,
        nodes: nodes.map(({ node, address, state, alive, seenAgoMs, facts }) => {
          return { node, address, state, alive, seenAgoMs, facts: { ...facts } };
        }),
        shards: shards.map(({ shard, owner, epoch, remainingMs }) => {
          const isOwned = owner !== undefined && remainingMs > 0;
          return { shard, epoch, leaseMs: Math.max(0, remainingMs), ...(isOwned && { owner }) };
        }),
      },
    };
  }),
  route(showNode, () => {
    const { node, address, state, memory, shards } = status();
    return {
      body: {
        node,
        address,
        state,
        ...(memory && { memory }),
        shards: shards.map(({ shard, phase, epoch, trouble, jobs, claims, ready }) => ({
          shard,
          phase,
          epoch,
          ...(trouble !== undefined && { trouble }),
          jobs,
          claims,
          ready: ready.map(({ requires, tasks }) => ({ requires: [...requires], tasks })),
        })),
      },
    };
  }),
];
