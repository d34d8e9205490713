/** Serves /v1/cluster. */
import { route, type Route } from "#http/route.ts";
import type { WorkClient } from "#shard/client/client.ts";
import type { NodeStatus } from "#shard/node-status.ts";
import { isolateShard, isolateTenant, releaseShard, releaseTenant, showCluster, showNode } from "#api/cluster.ts";
import type { HotShards } from "#app/node/hot-shards.ts";
import type { IsolatedTenants } from "#app/node/actions/isolated-tenants.ts";
import type { Isolation } from "#app/node/actions/isolation.ts";
import type { ShardLoad } from "#app/node/shard-loads.ts";
import { Problem } from "#http/problem.ts";

export type ClusterPorts = {
  readonly name: string;
  readonly work: Pick<WorkClient, "cluster" | "nodes" | "shards">;
  readonly status: () => NodeStatus;
  /** Left out in tests of routes that need neither. */
  readonly isolation?: Pick<Isolation, "all" | "isolate" | "release"> | undefined;
  readonly isolatedTenants?: Pick<IsolatedTenants, "all" | "homes" | "isolate" | "release"> | undefined;
  readonly hotShards?: Pick<HotShards, "loads"> | undefined;
};

export const clusterRoutes = ({
  name,
  work,
  status,
  isolation,
  isolatedTenants,
  hotShards,
}: ClusterPorts): readonly Route[] => [
  route(showCluster, async () => {
    const [{ clusterId, featureLevel }, nodes, shards] = await Promise.all([
      work.cluster(),
      work.nodes(),
      work.shards(),
    ]);
    const homes = isolatedTenants?.homes;
    return {
      body: {
        cluster: clusterId,
        node: name,
        featureLevel,
        nodes: nodes.map(({ node, address, state, alive, seenAgoMs, facts }) => {
          return { node, address, state, alive, seenAgoMs, facts: { ...facts } };
        }),
        shards: shards.map(({ shard, owner, epoch, remainingMs }) => {
          const isOwned = owner !== undefined && remainingMs > 0;
          const isolatedOn = isolation?.all.get(shard)?.node;
          const row = { shard, epoch, leaseMs: Math.max(0, remainingMs), ...(isOwned && { owner }) };
          if (isolatedOn !== undefined) return { ...row, isolatedOn };
          const home = homes?.get(shard);
          return home ? { ...row, isolatedOn: home.node, isolatedFor: home.tenant } : row;
        }),
        isolatedTenants: [...(isolatedTenants?.all ?? [])].map(([tenant, of]) => ({ tenant, ...of })),
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
          ...withLoad(hotShards?.loads.get(shard)),
          ready: ready.map(({ requires, tasks }) => ({ requires: [...requires], tasks })),
        })),
      },
    };
  }),
  ...(isolation ? isolationRoutes(work, isolation) : []),
  ...(isolatedTenants ? tenantRoutes(work, isolatedTenants) : []),
];

const withLoad = (load: ShardLoad | undefined) => (load ? { load: { ...load } } : {});

const isolationRoutes = (
  work: ClusterPorts["work"],
  isolation: NonNullable<ClusterPorts["isolation"]>,
): readonly Route[] => [
  route(isolateShard, async ({ params, body }) => {
    const [shards, nodes] = await Promise.all([work.shards(), work.nodes()]);
    const row = shards.find(({ shard }) => shard === Number(params.shard));
    if (!row) throw new Problem(404, `there is no shard ${params.shard}: it has ${shards.length}, from 0 on`);
    const isOwned = row.owner !== undefined && row.remainingMs > 0;
    const node = body.node ?? (isOwned ? row.owner : undefined);
    if (node === undefined) throw new Problem(409, `shard ${row.shard} has no owner now: name a node`);
    checkUp(nodes, node);
    await isolation.isolate(row.shard, { node, by: "hand" });
    return { body: { shard: row.shard, node } };
  }),
  route(releaseShard, async ({ params }) => {
    const shard = Number(params.shard);
    return { body: { shard, released: await isolation.release(shard) } };
  }),
];

const tenantRoutes = (
  work: ClusterPorts["work"],
  isolated: NonNullable<ClusterPorts["isolatedTenants"]>,
): readonly Route[] => [
  route(isolateTenant, async ({ params: { tenant }, body: { node } }) => {
    checkUp(await work.nodes(), node);
    return { body: { tenant, ...(await isolated.isolate(tenant, { node, by: "hand", shards: [] })) } };
  }),
  route(releaseTenant, async ({ params: { tenant } }) => ({
    body: { tenant, released: await isolated.release(tenant) },
  })),
];

function checkUp(nodes: Awaited<ReturnType<ClusterPorts["work"]["nodes"]>>, node: string): void {
  if (!nodes.some((one) => one.node === node && one.alive && one.state === "up"))
    throw new Problem(409, `no node ${node} is up: \`millrace nodes\` lists them`);
}
