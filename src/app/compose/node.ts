/** A node of the cluster: its shards, its router to those of other nodes, and a client of both. */
import type { Clock } from "#base/clock.ts";
import type { ShardId } from "#base/ids.ts";
import type { Random } from "#base/random.ts";
import type { Journal } from "#journal/journal.ts";
import { defaultLimits, type Limits } from "#kernel/model/limits.ts";
import type { Memory } from "#kernel/memory/memory.ts";
import { createClient } from "#shard/client/client.ts";
import type { ShardObserver } from "#shard/host/observer.ts";
import { createNode, type Node } from "#shard/node.ts";
import type { ShardService } from "#shard/transport/protocol.ts";
import { createRouter, type Router } from "#shard/router/router.ts";
import type { TcpTransport } from "#shard/transport/tcp.ts";
import type { TenantLoad } from "#app/node/heavy-tenants.ts";
import { hotShare, type HotShard } from "#app/node/hot-shards.ts";
import type { Worker } from "#worker/worker.ts";
import type { OpenDoors } from "./doors.ts";
import type { ComposedStore } from "./store/store.ts";
import { shardsOf, type Config } from "#app/config/config.ts";
import { askFeed, feedCalls } from "#app/peers/feed-calls.ts";
import { FeedDesk } from "#feed/desk.ts";
import { Feed } from "#feed/feed.ts";
import { liveCalls } from "#app/peers/live-streams.ts";
import { siteOf } from "#app/peers/site.ts";
import { publisherOf } from "#app/work/publishers.ts";
import { version } from "#app/version.ts";
import { directoryCalls } from "#app/peers/wire-directory.ts";
import { memoryLimits, memorySettings, processMemory } from "#app/work/work-memory.ts";
import { queueCalls } from "#app/pools/queue-calls.ts";
import { outputFact } from "#blobs/output/output-elsewhere.ts";
import { readyCalls } from "#app/work/work-sources.ts";

export type NodeParts = {
  readonly config: Config;
  readonly name: string;
  readonly journal: Journal;
  readonly stored: Pick<ComposedStore, "blobs" | "pins" | "streams" | "outputElsewhere">;
  readonly tcp: TcpTransport;
  readonly clock: Clock;
  readonly random: Random;
  /** Memory limit for the work of all shards here. */
  readonly memory: Memory;
  readonly observers: readonly ShardObserver[];
  /** Shards that have a node of their own, and which. */
  readonly isolated: () => ReadonlyMap<ShardId, string>;
  readonly hot: () => HotShard | undefined;
  /** The tenant that takes most of this node's time. */
  readonly heavy: () => TenantLoad | undefined;
  /** Called when the node starts, and later: doors are opened before that. */
  readonly doors: () => Pick<OpenDoors, "publishers" | "calls" | "facts">;
  readonly log: (line: string) => void;
};

/** `sandbox` is the kind of sandbox of tenants' commands. */
type WorkerFacts = Partial<ReturnType<Worker["status"]>> & { readonly sandbox: string | undefined };

/** So that any node can say which shard is hot. */
const hotFacts = (hot: HotShard | undefined, heavy: TenantLoad | undefined) => ({
  ...(hot && { hotShard: hot.shard, hotPercent: Math.round(hot.loopShare * 100) }),
  ...(heavy &&
    heavy.loopShare >= hotShare && {
      heavyTenant: heavy.tenant,
      heavyPercent: Math.round(heavy.loopShare * 100),
    }),
});

function outputFacts({ outputElsewhere }: Pick<ComposedStore, "outputElsewhere">): Readonly<Record<string, string>> {
  const fact = outputElsewhere?.fact;
  return fact === undefined ? {} : { [outputFact]: fact };
}

/** A node serves its own shards and, through its router, those of others; it calls itself without the network. */
export function joinNode(parts: NodeParts, workerFacts: () => WorkerFacts) {
  const { config, name, journal, stored, tcp, clock, random, memory, observers, isolated, doors, log } = parts;
  const { hot, heavy } = parts;
  const { blobs, pins } = stored;
  const desk = new FeedDesk(clock);
  const calls = () => ({
    ...directoryCalls(journal, () => node.status()),
    ...readyCalls(() => node),
    ...queueCalls(() => node),
    ...liveCalls(stored.streams),
    ...feedCalls(desk),
    ...doors().calls,
  });
  const shardLimits = (shards: number): Limits => ({
    ...limitsOf(config, shards),
    ...memoryLimits(memory.bytesMax, shards),
  });
  const report = (doing: string, error: unknown): void =>
    log(`${doing}: ${error instanceof Error ? error.message : String(error)}`);
  const listen = (service: ShardService) => tcp.listen(service, { routed: routedBy(router), calls: calls() });
  const node: Node = createNode({
    id: name,
    clock,
    journal,
    blobs,
    pins,
    observers: [...observers, desk],
    random: random.fork("node"),
    transport: { ...tcp, listen },
    cluster: { shards: shardsOf(config), clusterId: config.cluster.name },
    limits: ({ shards }) => shardLimits(shards),
    memory,
    host: memorySettings(processMemory(), shardsOf(config)),
    keeper: { leaseMs: config.cluster.ownerLease },
    isolated,
    ...(config.node.features === undefined ? {} : { features: config.node.features }),
    retention: { keepMs: config.history.keep },
    publisher: publisherOf(() => doors().publishers, log),
    facts: () => {
      const { slots = 0, running = 0, sandbox } = workerFacts();
      const facts = {
        version,
        pid: process.pid,
        slots,
        running,
        ...siteOf(config),
        ...doors().facts,
        ...hotFacts(hot(), heavy()),
        ...outputFacts(stored),
      };
      return sandbox ? { ...facts, sandbox } : facts;
    },
    report,
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
  const client = createClient({
    router,
    directory: journal,
    random: random.fork("client"),
    texts: (text) => node.readText(text),
  });
  const limits = (): Limits => shardLimits(node.cluster.shards);
  const feed = new Feed({ clock, node, desk, journal, blobs, limits, ask: askFeed(tcp), report });
  return { node, client, feed, routed: routedBy(router) };
}

/** For requests through this node's router: shorter than the caller's own timeout. */
const routedMs = 8_000;

/** For callers that know only this node: it never answers "ask another". */
const routedBy = (router: Router): ShardService => ({
  request: (request, signal) => {
    const heldMs = request.kind === "command" ? (request.waitMs ?? 0) : 0;
    return router.request(request, { deadlineMs: routedMs + heldMs, ...(signal && { signal }) });
  },
  watch: (request, signal) => router.watch(request, signal),
});

/** A shard's share of the cluster's limits. */
export const limitsOf = ({ cluster }: Config, shards: number): Limits => ({
  ...defaultLimits,
  queuedMax: cluster.queuedMax,
  tenantBytesMax: cluster.tenantMemoryMax ?? 0,
  ...(cluster.tasksMax !== undefined && { tasksMax: Math.ceil(cluster.tasksMax / shards) }),
});
