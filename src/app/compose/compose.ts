/** The composition root: a configuration becomes a running node. */
import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { arch, platform } from "node:os";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import { Random } from "#base/random.ts";
import { planLabel as buildPlanLabel } from "#doors/build/builds/plan-build.ts";
import { FlightDesk } from "#doors/build/execute/flight-desk.ts";
import { taskLabel as actionLabel } from "#doors/build/plan.ts";
import { TenantTrees } from "#doors/build/cache/tenant-trees.ts";
import { Seen } from "#doors/build/why/seen.ts";
import { planLabel, taskLabel } from "#doors/shell/plan.ts";
import type { LoginLink } from "#edge/identity/login.ts";
import type { MetricsRegistry } from "#edge/metrics/registry.ts";
import type { Cluster, Journal } from "#journal/journal.ts";
import { Memory } from "#kernel/memory/memory.ts";
import type { WorkClient } from "#shard/client/client.ts";
import type { Node } from "#shard/node.ts";
import { parseAddress } from "#shard/transport/tcp-address.ts";
import { createTcpTransport } from "#shard/transport/tcp.ts";
import type { SandboxAbout } from "#worker/sandbox/sandbox.ts";
import type { Worker } from "#worker/worker.ts";
import { openActions } from "./actions.ts";
import { executionPorts } from "./build.ts";
import { composeEdge, type ServedEdge } from "./edge.ts";
import { joinNode } from "./node.ts";
import { startMesh, type PeersView, type RunningMesh } from "./mesh.ts";
import { openWatching } from "./watching.ts";
import { openStore } from "./store.ts";
import { startWorker } from "./worker.ts";
import { shardsOf, type Config } from "#app/config/config.ts";
import { clusterSecret } from "#app/node/cluster-secret.ts";
import { folderLost, lockFolder, nodeName, publishAddress, watchLock, type DataFolder } from "#app/node/data-folder.ts";
import { Drain, type DrainPorts } from "#app/node/drain.ts";
import { tellWhereEdgeIs } from "#app/node/edge-notice.ts";
import { desks } from "#app/peers/flight-calls.ts";
import { checkAlone, whyAlone } from "#app/config/join-check.ts";
import { watchJournal } from "#app/node/journal-watch.ts";
import { factsFor } from "#app/peers/mesh-facts.ts";
import { liveSource } from "#app/peers/live-streams.ts";
import { ownerToken } from "#app/node/owner-token.ts";
import { peerEdges } from "#app/peers/peer-edges.ts";
import { foldersElsewhere, Readiness } from "#app/node/readiness.ts";
import { asSystemFault } from "#app/node/system-faults.ts";
import { systemClock } from "#app/node/system-clock.ts";
import { checkSeparation } from "#app/config/task-separation.ts";
import { processMemory, workBytesMax } from "#app/work/work-memory.ts";
import { workSources } from "#app/work/work-sources.ts";

export type Running = {
  readonly name: string;
  readonly node: Node;
  readonly client: WorkClient;
  readonly worker: Worker | undefined;
  readonly journal: Journal;
  readonly labels: readonly string[];
  /** Where the edge is served; none when it is not. */
  readonly edgePorts: readonly number[];
  readonly edgeAddresses: readonly string[];
  /** The token of the data folder. */
  readonly owner: string;
  /** A link that signs a browser in as the operator, once; undefined where there is no edge. */
  loginLink(): Promise<LoginLink | undefined>;
  readonly mesh: RunningMesh | undefined;
  /** Takes the node out of service, politely; `left` is when it is to be stopped. */
  readonly drain: Drain;
  /** Resolves when what it keeps was removed under it: it is not ready then, and has to be stopped. */
  readonly lost: Promise<Fault>;
  /** Lets running work go on for the configured time, hands the shards over, closes everything. */
  stop(): Promise<void>;
};

export type ComposePorts = {
  readonly clock?: Clock;
  readonly log: (line: string) => void;
  /** Where the configuration came from, if from a file: it may hold secrets. */
  readonly configFile?: string | undefined;
};

export async function startNode(
  config: Config,
  folder: DataFolder,
  { clock = systemClock, log, configFile }: ComposePorts,
): Promise<Running> {
  try {
    return await started(config, folder, { clock, log, configFile });
  } catch (error) {
    throw asSystemFault(error, "start the node");
  }
}

async function started(
  config: Config,
  folder: DataFolder,
  { clock, log, configFile }: ComposePorts & { readonly clock: Clock },
): Promise<Running> {
  await using undo = new AsyncDisposableStack();
  const ground = await openGround(config, folder, { clock, log, configFile }, undo);
  const working = await startWorking(ground, undo);
  const { node, client, worker, labels } = working;
  const drain = drainOf(node, { clock, worker: () => worker, log });
  const edge = await serveEdge(ground, working, drain, undo);
  const mesh = await joinMesh(ground, working, edge, undo);
  const local = ground.listenOn.find((address) => address.startsWith("unix:")); // tools know no secret
  undo.use(await publishAddress(folder, local ?? node.address));
  const { name, journal, owner, lost } = ground;
  const { ports: edgePorts = [], addresses: edgeAddresses = [] } = edge ?? {};
  const owned = undo.move();
  return {
    name,
    node,
    client,
    worker,
    journal,
    labels,
    edgePorts,
    edgeAddresses,
    owner,
    loginLink: async () => await edge?.loginLink(),
    mesh,
    drain,
    lost,
    async stop() {
      drain.begin({ withinMs: config.node.stopWithin, leave: true });
      await drain.left;
      await owned.disposeAsync();
    },
  };
}

type Ground = Awaited<ReturnType<typeof openGround>>;
type Working = Awaited<ReturnType<typeof startWorking>>;

/** What the rest stands on: the folder, the journal, the store, the way to other nodes, what is recorded of it all. */
async function openGround(
  config: Config,
  folder: DataFolder,
  { clock, log, configFile }: ComposePorts & { readonly clock: Clock },
  undo: AsyncDisposableStack,
) {
  const listenOn = config.node.listen.map((address) => (address === "unix" ? `unix:${folder.socket}` : address));
  for (const address of listenOn) parseAddress(address); // before anything is written
  const lost = Promise.withResolvers<Fault>();
  const lock = undo.use(await lockFolder(folder));
  undo.use(watchLock(lock, folder, clock, lost.resolve));
  const name = await nodeName(folder, config.node.name);
  const owner = await ownerToken(folder);
  const random = new Random(randomUUID());
  const journal = await openJournal(config, folder, clock);
  undo.defer(() => journal.close());
  undo.use(watchJournal(journal, { clock, log }));
  const mesh: { joined?: RunningMesh } = {}; // the edge is asked about it, and it tells where the edge is
  const peers = (): PeersView | undefined => mesh.joined?.peers();
  const otherEdges = () => peerEdges(peers(), config.cluster.name, config.edge.tls !== undefined);
  const onLost = (path: string): void => lost.resolve(folderLost(path));
  const stored = await openStore(config, folder, { clock, log, onLost, peers: otherEdges });
  undo.defer(() => stored.close());
  // To be on this machine is no credential: without a secret that nodes share, TCP is for the folder's owner alone.
  const secret = (await clusterSecret(config.cluster.secretFile)) ?? owner;
  const tcp = createTcpTransport({ clock, listenOn, secret, advertise: config.node.advertise });
  undo.defer(() => tcp.close());
  const memory = new Memory(config.node.workMemoryMax ?? workBytesMax(processMemory()));
  const watching = await openWatching(config, { name, clock, random, memory, log });
  undo.defer(() => watching.close());
  const trees = new TenantTrees();
  const seen = new Seen({ index: stored.index, wallMs: () => clock.wallMs() });
  return {
    config,
    folder,
    clock,
    log,
    configFile,
    lost: lost.promise,
    name,
    owner,
    random,
    journal,
    mesh,
    peers,
    stored,
    listenOn,
    tcp,
    memory,
    watching,
    trees,
    seen,
  };
}

/** The node in its cluster, and its worker. */
async function startWorking(ground: Ground, undo: AsyncDisposableStack) {
  const { config, folder, clock, log, name, random, journal, stored, tcp, watching, trees, seen } = ground;
  const { configFile, memory } = ground;
  const { metrics, watch, observers } = watching;
  const counted = {
    store: metrics.stored.store(stored.store, "worker"),
    index: stored.index,
    streams: stored.streams,
    seen,
  };
  const desk = new FlightDesk(clock);
  // Asked when there is work, and by then there is a node.
  const deskFor = desks({ name, desk }, () => joined.node.keeper.nodes, tcp);
  const acting = { name, ...counted, trees, deskFor, clock, watch, configFile, log };
  const actions = await openActions(config, folder, acting);
  if (actions) undo.defer(() => actions.close());
  let worker: Worker | undefined; // shown in the node's facts, which are told before there is one
  const common = { config, name, journal, stored, tcp, clock, random, memory, observers };
  const parts = { ...common, metrics: metrics.work, desk, log };
  const sandbox = actions?.about.kind;
  const warning = checkSeparation(config, actions?.about);
  if (warning !== undefined) log(warning);
  const joined = joinNode(parts, () => ({ ...worker?.status(), actions: actions ? 1 : 0, sandbox }));
  const { node, client } = joined;
  await checkOthers(ground);
  await node.start();
  undo.defer(() => node.stop());
  checkCluster(config, node.cluster, log);
  const labels = labelsOf(config, name, sandbox);
  if (config.worker.enabled) {
    const { runners = {}, planners = {}, resumes = [], processes } = actions ?? {};
    const work = { client, shards: node.cluster.shards, sources: workSources(node, tcp), blobs: stored.blobs };
    const what = { runners, planners, resumes, processes };
    const started = await startWorker(config, folder, { name, ...work, ...what, clock, random, labels, log });
    undo.defer(() => started.drain(0));
    worker = started;
  }
  return {
    ...joined,
    worker,
    labels,
    runsActions: actions !== undefined,
    sandbox,
    tools: actions?.tools,
    callers: actions?.callers,
  };
}

async function serveEdge(ground: Ground, working: Working, drain: Drain, undo: AsyncDisposableStack) {
  const { config, folder, clock, log, name, owner, journal, stored, tcp, watching, trees, seen, peers } = ground;
  const { node, client, routed, worker, labels, runsActions, tools, callers } = working;
  const { metrics } = watching;
  const live = liveSource({ name, streams: stored.streams }, node, tcp);
  const execution = executionPorts(config, {
    client,
    trees,
    journal,
    clock,
    live,
    here: runsActions ? name : undefined,
  });
  const traced = execution && { ...execution, traces: watching.calls };
  const cache = {
    ...stored,
    seen,
    spoolFolder: await spoolFolder(folder),
    spoolBytesMax: spoolBytesMax(config),
    execution: traced,
  };
  const show = (registry: MetricsRegistry): void =>
    watching.show(registry, { node, worker: () => worker, labels, upkeep: stored.upkeep, tools });
  const shown = { show, stored: metrics.stored, countedFor: metrics.countedFor.bind(metrics) };
  const readiness = undo.use(await readinessOf(ground, node));
  let isLost = false;
  void ground.lost.then(() => (isLost = true));
  const notReady = (): readonly string[] => [
    ...readiness.notReady(),
    ...(isLost ? ["data folder: it was removed or replaced"] : []),
  ];
  const asked = { clock, node, routed, journal, cache, notReady, peers, drain };
  const parts = { ...asked, metrics: shown, api: { name, work: client, live }, owner, callers, log };
  const edge = await composeEdge(config, parts);
  if (!edge) return undefined;
  undo.defer(() => edge.close());
  undo.use(await tellWhereEdgeIs(folder, edge, { isTls: config.edge.tls !== undefined, log }));
  return edge;
}

/** The journal may be silent for two leases, within which another node would have taken the shards over. */
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

async function joinMesh(
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

const drainOf = (node: Node, ports: Omit<DrainPorts, "node">): Drain =>
  new Drain({
    ...ports,
    node: { leave: () => node.leave(), resume: () => node.resume(), shards: () => node.keeper.held.size },
  });

/** What this machine is, what it can do and how well apart, and what else it is said to offer. */
function labelsOf(
  { worker: { labels } }: Config,
  name: string,
  sandbox: SandboxAbout["kind"] | undefined,
): readonly string[] {
  const isPooled = labels.some((label) => label.startsWith("pool="));
  const doors = [
    taskLabel,
    planLabel,
    ...(sandbox ? [actionLabel, buildPlanLabel, `sandbox=${sandbox}`] : []),
    ...(isPooled ? [] : ["pool=default"]),
  ];
  return [`os=${platform()}`, `arch=${arch()}`, `node=${name}`, ...doors, ...labels];
}

/** For uploads whose digest is not known yet; nothing in it outlives the process. */
async function spoolFolder({ path }: DataFolder): Promise<string> {
  const folder = join(path, "spool");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return folder;
}

/** They are on the same disk as the store, which should not have to evict for bytes that nobody has finished. */
const spoolBytesMax = ({ blobs }: Config): number =>
  blobs.kind === "disk" ? Math.max(64 * 1024 ** 2, Math.floor(blobs.sizeMax / 4)) : 16 * 1024 ** 3;

/** Before the node is one of them: what it keeps to itself would be missing to the others. */
async function checkOthers({ config, name, journal, log }: Ground): Promise<void> {
  const why = whyAlone(config);
  if (why === undefined) return;
  await journal.open({ shards: shardsOf(config), clusterId: config.cluster.name });
  checkAlone(why, name, await journal.nodes());
  log(`this node has to stay the only one of its journal: ${why}`);
}

/** The journal's word on the cluster counts: it was fixed when the store was created. */
export function checkCluster({ cluster: wanted }: Config, found: Cluster, log: (line: string) => void): void {
  if (found.clusterId !== wanted.name)
    throw new Fault("invalid", "join cluster", {
      configured: wanted.name,
      found: found.clusterId,
      why: "the journal belongs to a cluster of another name",
    });
  if (wanted.shards !== undefined && found.shards !== wanted.shards)
    log(`the journal was created with ${found.shards} shards; cluster.shards: ${wanted.shards} has no effect`);
}

/** Imported when needed: nobody waits for a database driver that is not used. */
export async function openJournal({ journal }: Config, folder: DataFolder, clock: Clock): Promise<Journal> {
  switch (journal.kind) {
    case "sqlite":
      return (await import("#journal/sqlite/sqlite.ts")).sqliteJournal({
        directory: journal.directory ?? folder.journal,
      });
    case "postgres":
      return (await import("#journal/postgres/postgres.ts")).postgresJournal({
        url: journal.url,
        schema: journal.schema,
      });
    case "memory":
      return (await import("#journal/memory/memory.ts")).memoryStore(() => clock.wallMs()).connect();
    default:
      return journal satisfies never;
  }
}
