/** Serves /v1/cluster/watch from the route that shows the cluster; one reading serves all viewers. */
import type { z } from "zod";
import { must } from "#base/assert.ts";
import type { Clock } from "#base/clock.ts";
import { watchCluster } from "#api/cluster-watch.ts";
import { showCluster } from "#api/cluster.ts";
import { route, type Reply, type Route } from "#http/route.ts";
import { LiveLists } from "./jobs/live-lists.ts";

type Cluster = z.input<(typeof showCluster)["answer"]["schema"]>;

const stepMs = 5_000;
const inSteps = (ms: number): number => Math.round(ms / stepMs) * stepMs;

export function clusterWatchRoutes(cluster: readonly Route[], clock: Clock): readonly Route[] {
  const { handle } = must(
    cluster.find(({ name }) => name === showCluster.name),
    "the route that shows the cluster",
  );
  const read = async (): Promise<{ readonly data: Cluster }> => {
    const { body } = (await handle(undefined as never)) as Reply<Cluster>; // it asks nothing of the call
    return {
      data: {
        ...body,
        nodes: body.nodes.map((node) => ({ ...node, seenAgoMs: inSteps(node.seenAgoMs) })),
        shards: body.shards.map((shard) => ({ ...shard, leaseMs: inSteps(shard.leaseMs) })),
      },
    };
  };
  const live = new LiveLists({ read, clock, everyMs: 1_000, quietMs: 1_000, listsMax: 1, viewersMax: 2_000 });
  return [route(watchCluster, ({ signal }) => ({ body: live.follow("cluster", signal) }))];
}
