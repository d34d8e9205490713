/** The cluster's facts, shard ownership, and the list of nodes. */
import type { ShardId } from "#base/ids.ts";
import type { Bound } from "./engine-log.ts";
import { clusterRow, shardRow } from "./engine-rows.ts";
import type * as port from "#journal/journal.ts";
import * as lease from "./ownership.ts";
import { freshShard, type Tables } from "./tables.ts";

export type Successor = { readonly node: port.NodeId; readonly reservedMs: number };

export function ownershipOver(tables: Tables) {
  return {
    open(_nowMs: number, wanted: { readonly shards: number; readonly clusterId: string }): port.Cluster {
      const known = tables.cluster();
      if (known) return known;
      const created = { ...wanted, featureLevel: 0 };
      tables.putCluster(created);
      for (let shard = 0; shard < wanted.shards; shard += 1) tables.putShard(freshShard(shard));
      return created;
    },

    cluster: (_nowMs: number): port.Cluster => clusterRow(tables),

    acquire(nowMs: number, shard: ShardId, wanted: lease.LeaseRequest): port.Acquired {
      const taken = lease.acquireLease(shardRow(tables, "acquire shard", shard), wanted, clusterRow(tables), nowMs);
      if (taken.row) tables.putShard(taken.row);
      return taken.answer;
    },

    renew(storeNowMs: number, node: port.NodeId, held: readonly Bound[], leaseMs: number) {
      const renewed = held.flatMap(({ shard, epoch }) => {
        const row = lease.renewLease(shardRow(tables, "renew lease", shard), { node, epoch, leaseMs }, storeNowMs);
        return row ?? [];
      });
      for (const row of renewed) tables.putShard(row);
      return { held: renewed.map(({ shard }) => shard), storeNowMs };
    },

    release(nowMs: number, { shard, epoch }: Bound, successor?: Successor): void {
      const row = lease.releaseLease(shardRow(tables, "release shard", shard), epoch, successor, nowMs);
      if (row) tables.putShard(row);
    },

    ownerships: (nowMs: number): port.Ownership[] => lease.ownershipsOf(tables.shards(), tables.nodes(), nowMs),

    announce: (seenAtMs: number, row: port.NodeRow, ttlMs: number): void => tables.putNode({ ...row, seenAtMs, ttlMs }),

    nodes: (nowMs: number): port.NodeSeen[] => tables.nodes().map((row) => lease.seen(row, nowMs)),

    raiseFeatureLevel(nowMs: number): number {
      const cluster = clusterRow(tables);
      const nodes = tables.nodes().map((row) => lease.seen(row, nowMs));
      const featureLevel = lease.raisedLevel(cluster.featureLevel, nodes);
      if (featureLevel !== cluster.featureLevel) tables.putCluster({ ...cluster, featureLevel });
      tables.dropNodes(nowMs - lease.nodeForgottenMs);
      return featureLevel;
    },
  };
}
