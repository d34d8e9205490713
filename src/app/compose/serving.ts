/** What a running node shows to the outside: its edge, whether it is ready, its place in the mesh. */
import { AuditTrail } from "#audit/trail.ts";
import type { MetricsRegistry } from "#edge/metrics/registry.ts";
import type { Node } from "#shard/node.ts";
import { sharedSource } from "#worker/printed/shared-source.ts";
import { composeEdge, type ServedEdge } from "./edge.ts";
import { spoolIn } from "#blobs/spool.ts";
import { WorkerRegistry } from "#app/workers/registry.ts";
import { TaskCheckpoints } from "#app/work/task-checkpoints.ts";
import { JobArtifacts } from "#app/work/job-artifacts.ts";
import { spoolBytesMax, spoolFolder } from "./door-ports.ts";
import { effectsOn, keepEffects } from "./services/effects.ts";
import { startPools } from "./services/pools.ts";
import { ownTokens } from "./services/issuer.ts";
import { startMesh, type RunningMesh } from "./mesh.ts";
import type { Drain } from "#app/node/drain.ts";
import { tellWhereEdgeIs, urlFromHere } from "#app/node/edge-notice.ts";
import { poolMetrics } from "#app/record/pool-metrics.ts";
import { feedMetrics } from "#app/record/feed-metrics.ts";
import { factsFor } from "#app/peers/mesh-facts.ts";
import { liveSource } from "#app/peers/live-streams.ts";
import { showHeavyTenants, showHotShards } from "#app/record/shard-metrics.ts";
import { foldersElsewhere, Readiness } from "#app/node/readiness.ts";
import type { Ground } from "./ground.ts";
import type { Working } from "./working.ts";

export async function serveEdge(ground: Ground, working: Working, drain: Drain, undo: AsyncDisposableStack) {
  const { config, folder, clock, log, name, owner, journal, stored, tcp, watching, peers, leaving, issuer } = ground;
  const { node, client, feed, routed, worker, labels, doors, kinds, callers, scheduled, retention, webhooks } = working;
  const show = (registry: MetricsRegistry): void => {
    showHotShards(registry, working.hotShards);
    showHeavyTenants(registry, working.heavyTenants);
    scheduled.show(registry);
    feedMetrics(registry, feed);
    retention.show(registry);
    working.usage.show(registry);
    webhooks.show(registry);
    poolMetrics(registry, () => pools.standings);
    stored.observe?.(registry);
    watching.show(registry, { node, worker: () => worker, labels, upkeep: stored.upkeep });
  };
  const readiness = undo.use(await readinessOf(ground, node));
  let isLost = false;
  void ground.lost.then(() => (isLost = true));
  const notReady = (): readonly string[] => [
    ...readiness.notReady(),
    ...(isLost ? ["data folder: it was removed or replaced"] : []),
  ];
  const nodeParts = { clock, node, routed, journal, doors, kinds, leaving, notReady, peers, drain };
  const { streams, areStreamsShared: areShared = false } = stored;
  const live = sharedSource(liveSource({ name, streams, areShared }, node, tcp));
  const { schedules } = scheduled;
  const effects = effectsOn({ records: ground.records, clock, client });
  undo.use(keepEffects(effects, { client, node, clock, log }));
  const { isolation, isolatedTenants, hotShards } = working;
  const ofShards = { webhooks: webhooks.api, status: () => node.status(), isolation, isolatedTenants, hotShards };
  const ofNode = { name, work: client, feed, doors: ground.doors, live, blobs: stored.blobs, ...ofShards };
  const { records, vaults, keeps } = ground;
  const spool = spoolIn(await spoolFolder(folder), spoolBytesMax(config));
  const versionMin = config.cluster.workerVersionMin;
  const registry = new WorkerRegistry({ records, issuer, clock, versionMin });
  const ofPools = { config, name, records, registry, clock, random: ground.random, node, client, tcp, log };
  const { pools, standings } = startPools(ofPools);
  undo.use(pools);
  const artifacts = new JobArtifacts({ records, blobs: stored.blobs, keeps, spool, clock });
  const checkpoints = new TaskCheckpoints({ work: client, kinds, store: stored.store, spool, clock });
  const api = {
    ...ofNode,
    vaults,
    schedules,
    effects,
    issuer,
    artifacts,
    checkpoints,
    registry,
    pools: { pools: config.pools, standings },
    keeps,
    records,
    resultsKeptMs: retention.resultsKeptMs,
    audit: new AuditTrail(records),
  };
  const taken = streams && { streams, client, clock, bytesMax: config.worker.printedMax };
  const own = ownTokens({ issuer, client, clock, isWorker: registry.isMember });
  const more = { owner, own, callers, log, socket: folder.edgeSocket, streams: taken, tasks: { client, issuer } };
  const edge = await composeEdge(config, { ...nodeParts, show, api, ...more });
  if (!edge) return undefined;
  undo.defer(() => edge.close());
  ground.serves.origin = urlFromHere(edge.addresses, config.edge.tls !== undefined);
  undo.use(await tellWhereEdgeIs(folder, edge, { isTls: config.edge.tls !== undefined, log }));
  return edge;
}

/** The journal may be silent for two leases, after which another node would have taken the shards over. */
const readinessOf = ({ config, folder, clock }: Ground, node: Node): Promise<Readiness> =>
  Readiness.start({
    clock,
    state: () => node.state,
    reach: () => node.keeper.reach(node.cluster.shards),
    dataFolder: folder.path,
    otherFolders: foldersElsewhere(config),
    freeBytesMin: config.node.diskFreeMin,
    journalMsMax: 2 * config.cluster.ownerLease,
  });

export async function joinMesh(
  { config, name, clock, random, log, mesh }: Ground,
  { node, worker, sandbox }: Working,
  edge: ServedEdge | undefined,
  undo: AsyncDisposableStack,
): Promise<RunningMesh | undefined> {
  if (!config.mesh) return undefined;
  const facts = factsFor(config, { node, worker: () => worker?.status(), sandbox, edgeAddress: edge?.addresses[0] });
  const joined = (mesh.joined = await startMesh(config.mesh, { name, clock, random, facts, log }));
  undo.defer(() => joined.stop());
  return joined;
}
