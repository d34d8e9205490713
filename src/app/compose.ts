/** The composition root: a configuration becomes a running node. */
import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { arch, platform } from "node:os";
import { join } from "node:path";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import { Random } from "#base/random.ts";
import { buildsDoor, planLabel as buildPlanLabel } from "#doors/build/builds/plan-build.ts";
import { door as buildDoor, taskLabel as actionLabel } from "#doors/build/plan.ts";
import { buildPublisher } from "#doors/build/publish.ts";
import { TenantTrees } from "#doors/build/tenant-trees.ts";
import { planLabel, taskLabel } from "#doors/shell/plan.ts";
import type { MetricsRegistry } from "#edge/metrics-registry.ts";
import type { Cluster, Journal } from "#journal/journal.ts";
import { createClient, type WorkClient } from "#shard/client.ts";
import type { ShardObserver } from "#shard/host-observer.ts";
import { createNode, type Node } from "#shard/node.ts";
import type { ShardService } from "#shard/protocol.ts";
import { createRouter, type Router } from "#shard/router.ts";
import { createTcpTransport, type TcpTransport } from "#shard/tcp.ts";
import type { Worker } from "#worker/worker.ts";
import { openActions } from "./compose-actions.ts";
import { executionPorts } from "./compose-build.ts";
import { composeEdge } from "./compose-edge.ts";
import { startMesh, type PeersView, type RunningMesh } from "./compose-mesh.ts";
import { openWatching } from "./compose-watching.ts";
import { openStore, type ComposedStore } from "./compose-store.ts";
import { startWorker } from "./compose-worker.ts";
import type { Config } from "./config.ts";
import { clusterSecret } from "./cluster-secret.ts";
import { lockFolder, nodeName, publishAddress, publishEdge, type DataFolder } from "./data-folder.ts";
import { Drain, type DrainPorts } from "./drain.ts";
import { factsFor } from "./mesh-facts.ts";
import { liveCalls, liveSource } from "./live-streams.ts";
import { peerEdges } from "./peer-edges.ts";
import { publisherOf } from "./publishers.ts";
import { systemClock } from "./system-clock.ts";
import { version } from "./version.ts";
import { directoryCalls } from "./wire-directory.ts";
import { readyCalls, workSources } from "./work-sources.ts";

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
  readonly mesh: RunningMesh | undefined;
  /** Takes the node out of service, politely; `left` is when it is to be stopped. */
  readonly drain: Drain;
  /** Lets running work go on for the configured time, hands the shards over, closes everything. */
  stop(): Promise<void>;
};

export type ComposePorts = { readonly clock?: Clock; readonly log: (line: string) => void };

/** For requests that come in through this node's router: shorter than the caller's own patience. */
const routedMs = 8_000;

export async function startNode(
  config: Config,
  folder: DataFolder,
  { clock = systemClock, log }: ComposePorts,
): Promise<Running> {
  await using undo = new AsyncDisposableStack();
  undo.use(await lockFolder(folder));
  const name = await nodeName(folder, config.node.name);
  const random = new Random(randomUUID());
  const journal = await openJournal(config, folder, clock);
  undo.defer(() => journal.close());
  let mesh: RunningMesh | undefined; // the edge is asked about it, and it tells where the edge is
  const peers = (): PeersView | undefined => mesh?.peers();
  const otherEdges = () => peerEdges(peers(), config.cluster.name, config.edge.tls !== undefined);
  const stored = await openStore(config, folder, { clock, log, peers: otherEdges });
  undo.defer(() => stored.close());
  const { blobs } = stored;
  const listenOn = config.node.listen.map((address) => (address === "unix" ? `unix:${folder.socket}` : address));
  const secret = await clusterSecret(config.cluster.secretFile);
  const tcp = createTcpTransport({ clock, listenOn, secret, advertise: config.node.advertise });
  undo.defer(() => tcp.close());

  const trees = new TenantTrees();
  const { store, index } = stored;
  const watching = await openWatching(config, { name, clock, random, log });
  undo.defer(() => watching.close());
  const { metrics, watch, observers } = watching;
  const counted = { store: metrics.stored.store(store, "worker"), index, streams: stored.streams };
  const actions = await openActions(config, folder, { name, ...counted, trees, clock, watch, log });
  if (actions) undo.defer(() => actions.close());
  let worker: Worker | undefined; // shown in the node's facts, which are told before there is one
  const parts: Parts = { config, name, journal, stored, tcp, clock, random, observers, log };
  const { node, client, routed } = joinParts(parts, () => ({ ...worker?.status(), actions: actions ? 1 : 0 }));
  await node.start();
  undo.defer(() => node.stop());
  checkCluster(config, node.cluster, log);
  const labels = labelsOf(config, name, actions !== undefined);
  const { shards } = node.cluster;
  const { runners = {}, planners = {}, resumes = [] } = actions ?? {};
  if (config.worker.enabled) {
    const work = { client, shards, sources: workSources(node, tcp) };
    worker = await startWorker(config, folder, {
      name,
      ...work,
      blobs,
      clock,
      random,
      labels,
      log,
      runners,
      planners,
      resumes,
      processes: actions?.processes,
    });
  }
  const live = liveSource({ name, streams: stored.streams }, node, tcp);
  const execution = executionPorts(config, { client, trees, journal, clock, live, isOwn: actions !== undefined });
  const traced = execution && { ...execution, traces: watching.calls };
  const cache = { ...stored, spoolFolder: await spoolFolder(folder), execution: traced };
  const drain = drainOf(node, { clock, worker: () => worker, log });
  const show = (registry: MetricsRegistry): void =>
    watching.show(registry, { node, worker: () => worker, labels, upkeep: stored.upkeep });
  const shown = { show, stored: metrics.stored, countedFor: metrics.countedFor.bind(metrics) };
  const edge = await composeEdge(config, { clock, node, routed, journal, cache, peers, drain, metrics: shown, log });
  if (edge) undo.defer(() => edge.close());
  const [edgeAddress] = edge?.addresses ?? [];
  if (edgeAddress !== undefined) undo.use(await publishEdge(folder, edgeAddress));
  if (config.mesh) {
    const facts = factsFor(config, { node, worker: () => worker?.status(), edgeAddress });
    const joined = (mesh = await startMesh(config.mesh, { name, clock, random, facts, log }));
    undo.defer(() => joined.stop());
  }
  const local = listenOn.find((address) => address.startsWith("unix:")); // tools know no secret
  undo.use(await publishAddress(folder, local ?? node.address));
  undo.defer(async () => await worker?.drain(0));

  const owned = undo.move();
  const { ports: edgePorts = [], addresses: edgeAddresses = [] } = edge ?? {};
  return {
    name,
    node,
    client,
    worker,
    journal,
    labels,
    edgePorts,
    edgeAddresses,
    mesh,
    drain,
    async stop() {
      drain.begin({ withinMs: config.node.stopWithin, leave: true });
      await drain.left;
      await owned.disposeAsync();
    },
  };
}

const drainOf = (node: Node, ports: Omit<DrainPorts, "node">): Drain =>
  new Drain({
    ...ports,
    node: { leave: () => node.leave(), resume: () => node.resume(), shards: () => node.keeper.held.size },
  });

/** What this machine is, what it can do, and what else it is said to offer. */
function labelsOf({ worker: { labels } }: Config, name: string, hasActions: boolean): readonly string[] {
  const isPooled = labels.some((label) => label.startsWith("pool="));
  const doors = [
    taskLabel,
    planLabel,
    ...(hasActions ? [actionLabel, buildPlanLabel] : []),
    ...(isPooled ? [] : ["pool=default"]),
  ];
  return [`os=${platform()}`, `arch=${arch()}`, `node=${name}`, ...doors, ...labels];
}

type Parts = {
  readonly config: Config;
  readonly name: string;
  readonly journal: Journal;
  readonly stored: Pick<ComposedStore, "blobs" | "pins" | "index" | "streams">;
  readonly tcp: TcpTransport;
  readonly clock: Clock;
  readonly random: Random;
  readonly observers: readonly ShardObserver[];
  readonly log: (line: string) => void;
};

/** `actions` is 1 where actions of builds are run. */
type WorkerFacts = Partial<ReturnType<Worker["status"]>> & { readonly actions: number };

/** A node serves its shards and, through its router, everybody's; it asks itself without the network. */
function joinParts(parts: Parts, workerFacts: () => WorkerFacts) {
  const { config, name, journal, stored, tcp, clock, random, observers, log } = parts;
  const { blobs, pins, index } = stored;
  const published = buildPublisher(index, () => clock.wallMs());
  const calls = {
    ...directoryCalls(journal, () => node.status()),
    ...readyCalls(() => node),
    ...liveCalls(stored.streams),
  };
  const listen = (service: ShardService) => tcp.listen(service, { routed: routedBy(router), calls });
  const node: Node = createNode({
    id: name,
    clock,
    journal,
    blobs,
    ...(pins && { pins }),
    observers,
    random: random.fork("node"),
    transport: { ...tcp, listen },
    cluster: { shards: config.cluster.shards, clusterId: config.cluster.name },
    keeper: { leaseMs: config.cluster.ownerLease },
    retention: { keepMs: config.history.keep },
    publisher: publisherOf({ [buildDoor]: published, [buildsDoor]: published }, log),
    facts: () => {
      const { slots = 0, running = 0, actions } = workerFacts();
      return { version, pid: process.pid, slots, running, actions };
    },
    report: (doing, error) => log(`${doing}: ${error instanceof Error ? error.message : String(error)}`),
  });
  const router: Router = createRouter({
    self: node,
    get selfAddress() {
      return node.address;
    },
    ownerships: () => journal.ownerships(),
    transport: tcp,
    clock,
    random: random.fork("router"),
  });
  const client = createClient({ router, directory: journal, random: random.fork("client") });
  return { node, client, routed: routedBy(router) };
}

/** For uploads whose digest is not known yet; nothing in it outlives the process. */
async function spoolFolder({ path }: DataFolder): Promise<string> {
  const folder = join(path, "spool");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return folder;
}

/** The journal's word on the cluster counts: it was fixed when the store was created. */
export function checkCluster({ cluster: wanted }: Config, found: Cluster, log: (line: string) => void): void {
  if (found.clusterId !== wanted.name)
    throw new Fault("invalid", "join cluster", {
      configured: wanted.name,
      found: found.clusterId,
      why: "the journal belongs to a cluster of another name",
    });
  if (found.shards !== wanted.shards)
    log(`the journal was created with ${found.shards} shards; cluster.shards: ${wanted.shards} has no effect`);
}

/** What a caller that knows only this node gets: never "ask another". */
const routedBy = (router: Router): ShardService => ({
  request: (request, signal) => {
    const heldMs = request.kind === "command" ? (request.waitMs ?? 0) : 0;
    return router.request(request, { deadlineMs: routedMs + heldMs, ...(signal && { signal }) });
  },
  watch: (request, signal) => router.watch(request, signal),
});

/** Imported when needed: nobody waits for a database driver that is not used. */
export async function openJournal({ journal }: Config, folder: DataFolder, clock: Clock): Promise<Journal> {
  switch (journal.kind) {
    case "sqlite":
      return (await import("#journal/sqlite.ts")).sqliteJournal({ directory: journal.directory ?? folder.journal });
    case "postgres":
      return (await import("#journal/postgres.ts")).postgresJournal({ url: journal.url, schema: journal.schema });
    case "memory":
      return (await import("#journal/memory.ts")).memoryStore(() => clock.wallMs()).connect();
    default:
      return journal satisfies never;
  }
}
