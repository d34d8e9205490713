/** The node in its cluster, its doors, its worker and its schedules. */
import { arch, platform } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { KeptStreams } from "#worker/printed/kept-streams.ts";
import type { SandboxAbout } from "#worker/sandbox/sandbox.ts";
import type { Worker } from "#worker/worker.ts";
import { observerOf, openDoors, type OpenDoors } from "./doors.ts";
import { joinNode } from "./node.ts";
import { openPlace } from "./place.ts";
import { UsageMeter } from "#app/record/usage.ts";
import { keepingPins, startRetention } from "./services/retention.ts";
import { startSchedules } from "./services/schedules.ts";
import { startWebhooks } from "./services/webhooks.ts";
import { startWorker } from "./worker.ts";
import { taskAccess } from "#app/work/task-access.ts";
import type { Config } from "#app/config/config.ts";
import { HotShards } from "#app/node/hot-shards.ts";
import { HeavyTenants } from "#app/node/heavy-tenants.ts";
import { IsolatedTenants } from "#app/node/actions/isolated-tenants.ts";
import { Isolation } from "#app/node/actions/isolation.ts";
import { TenantLoads } from "#app/node/tenant-loads.ts";
import { outputFact, type OutputElsewhere } from "#blobs/output/output-elsewhere.ts";
import type { ShardId } from "#base/ids.ts";
import type { WorkClient } from "#shard/client/client.ts";
import type { CountedShard } from "#app/node/shard-loads.ts";
import { kindTableOf } from "#app/door-kinds.ts";
import { checkSeparation } from "#app/config/task-separation.ts";
import { siteOf } from "#app/peers/site.ts";
import { workSources } from "#app/work/work-sources.ts";
import type { Ground } from "./ground.ts";
import { doorPorts } from "./door-ports.ts";
import { prepareJournal } from "./journal.ts";

export type Working = Awaited<ReturnType<typeof startWorking>>;

export async function startWorking(ground: Ground, undo: AsyncDisposableStack) {
  const { config, folder, clock, log, name, random, journal, stored, tcp, watching, configFile, memory } = ground;
  const { streams } = stored;
  const live = streams && { streams, keeper: await KeptStreams.open(streams, join(folder.path, "kept-streams")) };
  const place = await openPlace(config, folder, { clock, live, configFile, doors: ground.doors, log });
  if (place) undo.defer(() => place.close());
  const about = place?.boxed?.sandbox.about;
  const warning = checkSeparation(config, about);
  if (warning !== undefined) log(warning);
  let worker: Worker | undefined; // shown in the node's facts, which exist before it
  const counted = new Map(ground.doors.map((door) => [door.name, door.cpuMs]));
  const cpuMsIn = (door: string, payload: string): number | undefined => counted.get(door)?.(payload);
  // ends after the node
  const usage = undo.use(new UsageMeter({ node: name, records: ground.records, clock, cpuMsIn, log }));
  const tenantLoads = new TenantLoads();
  const observers = [...watching.observers, observerOf(() => opened), usage, tenantLoads];
  const isolation = undo.use(new Isolation(ground.records, () => joined.node.keeper.look()));
  const isolatedTenants = undo.use(new IsolatedTenants(ground.records, () => joined.node.keeper.look()));
  const heavyTenants = new HeavyTenants({
    node: name,
    shards: () => joined.node.cluster.shards,
    loads: () => hotShards.loads,
    shares: () => tenantLoads.shares,
    tenants: isolatedTenants,
    isIsolated: (shard) => isolation.homes.has(shard),
    isolateAt: config.cluster.isolateTenantAt,
    log,
  });
  const looked = (): Promise<void> => {
    tenantLoads.sample();
    return heavyTenants.look();
  };
  const hotShards = undo.use(watchHotShards(ground, isolation, () => joined.node.host.shards.values(), looked));
  const isolated = (): ReadonlyMap<ShardId, string> => {
    const homes = new Map([...isolatedTenants.homes].map(([shard, { node: home }]) => [shard, home]));
    for (const [shard, home] of isolation.homes) homes.set(shard, home); // one that is named itself
    return homes;
  };
  const placing = { isolated, hot: () => hotShards.hot, heavy: () => heavyTenants.loads[0] };
  const keeping = { ...stored, pins: keepingPins(stored.pins, ground.doors) };
  const common = { config, name, journal, stored: keeping, tcp, clock, random, memory, observers, log, ...placing };
  const joined = joinNode({ ...common, doors: () => opened }, () => ({ ...worker?.status(), sandbox: about?.kind }));
  const { node, client } = joined;
  await prepareJournal(ground, node); // doors may use records as soon as they are open
  const lent = await doorPorts(ground, joined, place, undo, () => opened);
  const opened: OpenDoors = await openDoors(ground.doors, config, lent, undo);
  await place?.keepOnly(opened.found);
  void isolation.follow((error) => log(`follow isolated shards: ${String(error)}`));
  void isolatedTenants.follow((error) => log(`follow isolated tenants: ${String(error)}`));
  await node.start();
  void hotShards.run();
  if (stored.outputElsewhere) undo.use(followOutput(stored.outputElsewhere, client, name));
  undo.defer(() => node.stop());
  undo.defer(() => joined.feed.stop());
  const labels = labelsOf(config, name, opened.labels, about?.kind);
  const kinds = kindTableOf(ground.doors);
  if (place) {
    const sources = workSources(node, tcp, config.node.region);
    const access = taskAccess({ issuer: ground.issuer, origin: () => ground.serves.origin, log });
    const room = { slots: place.slots, planners: config.worker.planners };
    const where = { name, client, shards: node.cluster.shards, sources, ...room, blobs: stored.blobs };
    const started = startWorker({ ...where, doors: opened, kinds, access, clock, random, labels, log });
    undo.defer(() => started.drain(0));
    worker = started;
  }
  const scheduled = startSchedules({ records: ground.records, clock, node, client, doors: ground.doors, log });
  undo.use(scheduled.timer);
  const { keeps, records, doors } = ground;
  const retention = startRetention({ config, keeps, records, pins: stored.pins, clock, journal, node, doors, log });
  undo.use(retention.keeper);
  undo.use(retention.results);
  const { feed } = joined;
  const told = { records: ground.records, vault: ground.vaults.system, doors: ground.doors };
  const webhooks = startWebhooks({ ...told, config, name, feed, node, client, clock, random, log });
  undo.use(webhooks.deliverer);
  return {
    ...joined,
    isolation,
    isolatedTenants,
    hotShards,
    heavyTenants,
    scheduled,
    retention,
    usage,
    webhooks,
    worker,
    labels,
    doors: opened,
    kinds,
    sandbox: about?.kind,
    callers: place?.boxed?.sandbox.callers,
  };
}

function watchHotShards(
  { name, clock, config, log }: Ground,
  isolation: Isolation,
  shards: () => Iterable<CountedShard>,
  looked: () => Promise<void>,
): HotShards {
  let before = performance.eventLoopUtilization();
  const busy = (): number => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    return utilization;
  };
  const { isolateAt } = config.cluster;
  return new HotShards({ node: name, clock, shards, busy, isolation, looked, isolateAt, log });
}

/** Labels of this machine, of its doors and its sandbox, and the configured ones. */
function labelsOf(
  config: Config,
  name: string,
  ofDoors: readonly string[],
  sandbox: SandboxAbout["kind"] | undefined,
): readonly string[] {
  const { labels } = config.worker;
  const isPooled = labels.some((label) => label.startsWith("pool="));
  const more = [...(sandbox ? [`sandbox=${sandbox}`] : []), ...(isPooled ? [] : ["pool=default"])];
  const site = Object.entries(siteOf(config)).map(([what, where]) => `${what}=${where}`);
  return [`os=${platform()}`, `arch=${arch()}`, `node=${name}`, ...site, ...ofDoors, ...more, ...labels];
}

function followOutput(elsewhere: OutputElsewhere, client: Pick<WorkClient, "nodes">, self: string): Disposable {
  const said = async () =>
    (await client.nodes()).map(({ node, alive, facts }) => ({ node, alive, said: facts[outputFact] }));
  elsewhere.follow(said, self);
  return elsewhere;
}
