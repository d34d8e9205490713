/** The composition root: a configuration becomes a running node. */
import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { arch, platform } from "node:os";
import { join } from "node:path";
import { must } from "#base/assert.ts";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import { AuditTrail } from "#audit/trail.ts";
import { Random } from "#base/random.ts";
import type { Door } from "#door/door.ts";
import type { DoorPorts } from "#door/ports.ts";
import { isThisMachineOnly } from "#edge/identity/identity-config.ts";
import type { LoginLink } from "#edge/identity/login.ts";
import { Log } from "#edge/log/log.ts";
import type { MetricsRegistry } from "#edge/metrics/registry.ts";
import type { Cluster, Journal } from "#journal/journal.ts";
import { partitionedJournal } from "#journal/partitioned.ts";
import { Memory } from "#kernel/memory/memory.ts";
import { spoolIn } from "#blobs/spool.ts";
import { Sources } from "#sources/sources.ts";
import { watchedRecords } from "#records/watch.ts";
import type { WorkClient } from "#shard/client/client.ts";
import type { Node } from "#shard/node.ts";
import { parseAddress } from "#shard/transport/tcp-address.ts";
import { createTcpTransport } from "#shard/transport/tcp.ts";
import { KeptStreams } from "#worker/printed/kept-streams.ts";
import { sharedSource } from "#worker/printed/shared-source.ts";
import type { SandboxAbout } from "#worker/sandbox/sandbox.ts";
import type { Worker } from "#worker/worker.ts";
import { openDoors, type OpenDoors } from "./doors.ts";
import { composeEdge, type ServedEdge } from "./edge.ts";
import { joinNode } from "./node.ts";
import { startMesh, type PeersView, type RunningMesh } from "./mesh.ts";
import { openPlace, type Place } from "./place.ts";
import { openWatching } from "./watching.ts";
import { openStore } from "./store.ts";
import { startSchedules } from "./schedules.ts";
import { openVaults } from "./vault.ts";
import { startWorker } from "./worker.ts";
import { serversOf, shardsOf, type Config } from "#app/config/config.ts";
import { doorOfJob, kindTableOf } from "#app/door-kinds.ts";
import { doors as allDoors } from "#app/doors.ts";
import { clusterSecret } from "#app/node/cluster-secret.ts";
import { folderLost, lockFolder, nodeName, publishAddress, watchLock, type DataFolder } from "#app/node/data-folder.ts";
import { Drain, type DrainPorts } from "#app/node/drain.ts";
import { tellWhereEdgeIs, urlFromHere } from "#app/node/edge-notice.ts";
import { checkAlone, whyAlone } from "#app/config/join-check.ts";
import { watchJournal } from "#app/node/journal-watch.ts";
import { factsFor } from "#app/peers/mesh-facts.ts";
import { liveSource } from "#app/peers/live-streams.ts";
import { ownerToken } from "#app/node/owner-token.ts";
import { peerEdges } from "#app/peers/peer-edges.ts";
import { foldersElsewhere, Readiness } from "#app/node/readiness.ts";
import { asSystemFault } from "#app/node/system-faults.ts";
import { systemClock } from "#door/system-clock.ts";
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
  /** The edge's ports; empty if there is no edge. */
  readonly edgePorts: readonly number[];
  readonly edgeAddresses: readonly string[];
  /** The token of the data folder. */
  readonly owner: string;
  /** A one-time link that signs a browser in as the operator; undefined if there is no edge. */
  loginLink(): Promise<LoginLink | undefined>;
  readonly mesh: RunningMesh | undefined;
  /** Takes the node out of service gracefully; `left` resolves when it should be stopped. */
  readonly drain: Drain;
  /** Resolves when its folder was removed while it ran: it is not ready then, and must be stopped. */
  readonly lost: Promise<Fault>;
  /** Lets running work continue for the configured time, hands the shards over, closes everything. */
  stop(): Promise<void>;
};

export type ComposePorts = {
  readonly clock?: Clock;
  readonly log: (line: string) => void;
  /** The configuration's file, if there is one: it may contain secrets. */
  readonly configFile?: string | undefined;
  /** Left out: all doors of this program. */
  readonly doors?: readonly Door[];
};

type StartPorts = ComposePorts & Required<Pick<ComposePorts, "clock" | "doors">>;

export async function startNode(
  config: Config,
  folder: DataFolder,
  { clock = systemClock, doors = allDoors, ...ports }: ComposePorts,
): Promise<Running> {
  try {
    return await started(config, folder, { ...ports, clock, doors });
  } catch (error) {
    throw asSystemFault(error, "start the node");
  }
}

async function started(config: Config, folder: DataFolder, ports: StartPorts): Promise<Running> {
  const { clock, log } = ports;
  await using undo = new AsyncDisposableStack();
  const ground = await openGround(config, folder, ports, undo);
  const working = await startWorking(ground, undo);
  const { node, client, worker, labels } = working;
  const drain = drainOf(node, { clock, worker: () => worker, log });
  const edge = await serveEdge(ground, working, drain, undo);
  const mesh = await joinMesh(ground, working, edge, undo);
  const local = ground.listenOn.find((address) => address.startsWith("unix:")); // tools do not know the secret
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

/** What the other parts need: the folder, the journal, the store, the transport to other nodes, metrics and traces. */
async function openGround(
  config: Config,
  folder: DataFolder,
  { clock, log, configFile, doors }: StartPorts,
  undo: AsyncDisposableStack,
) {
  const listenOn = config.node.listen.map((address) => (address === "unix" ? `unix:${folder.socket}` : address));
  for (const address of listenOn) parseAddress(address); // checked before anything is written
  const lost = Promise.withResolvers<Fault>();
  const lock = undo.use(await lockFolder(folder));
  undo.use(watchLock(lock, folder, clock, lost.resolve));
  const name = await nodeName(folder, config.node.name);
  const owner = await ownerToken(folder);
  const random = new Random(randomUUID());
  const journal = await openJournal(config, folder, clock);
  undo.defer(() => journal.close());
  undo.use(watchJournal(journal, { clock, log }));
  const records = watchedRecords(journal.records, clock);
  const vaults = openVaults(config, folder, { records, clock });
  const mesh: { joined?: RunningMesh } = {}; // the edge and the mesh refer to each other
  const peers = (): PeersView | undefined => mesh.joined?.peers();
  const otherEdges = () => peerEdges(peers(), config.cluster.name, config.edge.tls !== undefined);
  const onLost = (path: string): void => lost.resolve(folderLost(path));
  const stored = await openStore(config, folder, { clock, log, onLost, peers: otherEdges });
  undo.defer(() => stored.close());
  // A local address is not a credential: without a shared secret, TCP is for the folder's owner alone.
  const secret = (await clusterSecret(config.cluster.secretFile)) ?? owner;
  const tcp = createTcpTransport({ clock, listenOn, secret, advertise: config.node.advertise });
  undo.defer(() => tcp.close());
  const memory = new Memory(config.node.workMemoryMax ?? workBytesMax(processMemory()));
  const traceIn = (door: string, spec: string): string | undefined => doorOfJob(door, doors)?.traceIn?.(spec);
  const watching = await openWatching(config, { name, clock, random, memory, traceIn, log });
  undo.defer(() => watching.close());
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
    records,
    vaults,
    mesh,
    peers,
    stored,
    listenOn,
    tcp,
    memory,
    watching,
    doors,
    leaving: new AbortController(),
    serves: {} as { origin?: string }, // known once the edge listens
  };
}

/** The node in its cluster, its doors, and its worker. */
async function startWorking(ground: Ground, undo: AsyncDisposableStack) {
  const { config, folder, clock, log, name, random, journal, stored, tcp, watching, configFile, memory } = ground;
  const { streams } = stored;
  const live = streams && { streams, keeper: await KeptStreams.open(streams, join(folder.path, "kept-streams")) };
  const place = await openPlace(config, folder, { clock, live, configFile, log });
  if (place) undo.defer(() => place.close());
  const about = place?.boxed?.sandbox.about;
  const warning = checkSeparation(config, about);
  if (warning !== undefined) log(warning);
  let worker: Worker | undefined; // shown in the node's facts, which exist before it
  const { observers } = watching;
  const common = { config, name, journal, stored, tcp, clock, random, memory, observers, log };
  const joined = joinNode({ ...common, doors: () => opened }, () => ({ ...worker?.status(), sandbox: about?.kind }));
  const { node, client } = joined;
  await prepareJournal(ground); // doors may use records as soon as they are open
  const opened: OpenDoors = await openDoors(ground.doors, config, await doorPorts(ground, joined, place, undo), undo);
  await place?.keepOnly(opened.found);
  await node.start();
  undo.defer(() => node.stop());
  checkCluster(config, node.cluster, log);
  const labels = labelsOf(config, name, opened.labels, about?.kind);
  const kinds = kindTableOf(ground.doors);
  if (place) {
    const sources = workSources(node, tcp);
    const where = { name, client, shards: node.cluster.shards, sources, slots: place.slots, blobs: stored.blobs };
    const started = startWorker({ ...where, doors: opened, kinds, clock, random, labels, log });
    undo.defer(() => started.drain(0));
    worker = started;
  }
  const scheduled = startSchedules({ records: ground.records, clock, node, client, doors: ground.doors, log });
  undo.use(scheduled.timer);
  return {
    ...joined,
    scheduled,
    worker,
    labels,
    doors: opened,
    kinds,
    sandbox: about?.kind,
    callers: place?.boxed?.sandbox.callers,
  };
}

/** What doors are opened with. The client and the peers answer once the node has started. */
async function doorPorts(
  { config, folder, clock, log, name, random, records, vaults, stored, tcp, watching, leaving, serves }: Ground,
  { node, client }: Pick<ReturnType<typeof joinNode>, "node" | "client">,
  place: Place | undefined,
  undo: AsyncDisposableStack,
): Promise<DoorPorts> {
  const { metrics, calls, watch } = watching;
  const doorLog = undo.use(new Log((line) => log(line.trimEnd()), clock));
  const { blobs, store, index, upkeep, streams } = stored;
  const spool = { folder: await spoolFolder(folder), bytesMax: spoolBytesMax(config) };
  const { protocols, privateAddresses, pushMax } = config.sources;
  const sources = new Sources({
    node: name,
    folder: folder.path,
    records,
    store,
    spool: spoolIn(spool.folder, spool.bytesMax),
    clock,
    rules: { protocols, privateAddresses },
    pushBytesMax: pushMax,
  });
  sources.announceMissed().catch((error: unknown) => doorLog.warn("sources-announce-failed", { error }));
  return {
    node: name,
    clock,
    random: random.fork("doors"),
    log,
    warn: (event, fields) => doorLog.warn(event, fields),
    client,
    peers: {
      nodes: () => node.keeper.nodes,
      call: (address, method, body, signal) => tcp.call(address, method, body, signal),
    },
    stored: { blobs, store, index, upkeep, streams, counted: (door) => metrics.countedFor({ store, index }, door) },
    records,
    vault: vaults.secrets,
    dataFolder: folder.path,
    sources,
    spool,
    live: liveSource({ name, streams, areShared: stored.areStreamsShared ?? false }, node, tcp),
    origin: () => serves.origin,
    place,
    labels: config.worker.labels,
    traces: calls,
    watch,
    counts: {
      looked: (door, tenant, outcome) => metrics.stored.looked(door, tenant, outcome),
      publicationRefused: (door) => metrics.work.publicationRefused(door),
    },
    isThisMachineOnly: isThisMachineOnly(config.edge.identity),
    leaving: leaving.signal,
  };
}

async function serveEdge(ground: Ground, working: Working, drain: Drain, undo: AsyncDisposableStack) {
  const { config, folder, clock, log, name, owner, journal, stored, tcp, watching, peers, leaving } = ground;
  const { node, client, routed, worker, labels, doors, kinds, callers, scheduled } = working;
  const show = (registry: MetricsRegistry): void => {
    scheduled.show(registry);
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
  const asked = { clock, node, routed, journal, doors, kinds, leaving, notReady, peers, drain };
  const { streams, areStreamsShared: areShared = false } = stored;
  const live = sharedSource(liveSource({ name, streams, areShared }, node, tcp));
  const { schedules } = scheduled;
  const ofNode = { name, work: client, doors: ground.doors, live, status: () => node.status() };
  const api = { ...ofNode, vaults: ground.vaults, schedules, audit: new AuditTrail(ground.records) };
  const taken = streams && { streams, client, clock, bytesMax: config.worker.printedMax };
  const more = { owner, callers, log, socket: folder.edgeSocket, streams: taken };
  const edge = await composeEdge(config, { ...asked, show, api, ...more });
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

/** Labels of this machine, of its doors and its sandbox, and the configured ones. */
function labelsOf(
  { worker: { labels } }: Config,
  name: string,
  ofDoors: readonly string[],
  sandbox: SandboxAbout["kind"] | undefined,
): readonly string[] {
  const isPooled = labels.some((label) => label.startsWith("pool="));
  const more = [...(sandbox ? [`sandbox=${sandbox}`] : []), ...(isPooled ? [] : ["pool=default"])];
  return [`os=${platform()}`, `arch=${arch()}`, `node=${name}`, ...ofDoors, ...more, ...labels];
}

/** For uploads whose digest is not known yet; nothing in it survives the process. */
async function spoolFolder({ path }: DataFolder): Promise<string> {
  const folder = join(path, "spool");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return folder;
}

/** They are on the same disk as the store, which should not evict blobs for unfinished uploads. */
const spoolBytesMax = ({ blobs }: Config): number =>
  blobs.kind === "disk" ? Math.max(64 * 1024 ** 2, Math.floor(blobs.sizeMax / 4)) : 16 * 1024 ** 3;

/** Creates it if it is new. A node that must be alone finds out before it joins: others would miss its data. */
async function prepareJournal({ config, name, journal, log }: Ground): Promise<void> {
  await journal.open({ shards: shardsOf(config), clusterId: config.cluster.name });
  const why = whyAlone(config);
  if (why === undefined) return;
  checkAlone(why, name, await journal.nodes());
  log(`this node must stay the only one of its journal: ${why}`);
}

/** The journal's settings count: they were fixed when it was created. */
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

/** Imported on demand: an unused database driver is not loaded. */
export async function openJournal({ journal }: Config, folder: DataFolder, clock: Clock): Promise<Journal> {
  switch (journal.kind) {
    case "sqlite":
      return (await import("#journal/sqlite/sqlite.ts")).sqliteJournal({
        directory: journal.directory ?? folder.journal,
      });
    case "postgres": {
      const { postgresJournal } = await import("#journal/postgres/postgres.ts");
      const databases = serversOf(journal).map((server) => postgresJournal(server));
      return databases.length > 1 ? partitionedJournal({ databases, clock }) : must(databases[0], "a database");
    }
    case "memory":
      return (await import("#journal/memory/memory.ts")).memoryStore(() => clock.wallMs()).connect();
    default:
      return journal satisfies never;
  }
}
