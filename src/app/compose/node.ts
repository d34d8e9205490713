/** A node of the cluster, put together: its shards, its router to those of others, and a client of both. */
import type { Clock } from "#base/clock.ts";
import { formatTask } from "#base/ids.ts";
import type { Random } from "#base/random.ts";
import type { Desk } from "#doors/build/execute/flight-desk.ts";
import { buildsDoor } from "#doors/build/builds/plan-build.ts";
import { door as buildDoor } from "#doors/build/plan.ts";
import { buildPublisher } from "#doors/build/execute/publish.ts";
import type { Journal } from "#journal/journal.ts";
import { defaultLimits, type Limits } from "#kernel/model/limits.ts";
import type { Memory } from "#kernel/memory/memory.ts";
import { createClient } from "#shard/client/client.ts";
import type { ShardObserver } from "#shard/host/observer.ts";
import { createNode, type Node } from "#shard/node.ts";
import type { ShardService } from "#shard/transport/protocol.ts";
import { createRouter, type Router } from "#shard/router/router.ts";
import type { TcpTransport } from "#shard/transport/tcp.ts";
import type { Worker } from "#worker/worker.ts";
import type { ComposedStore } from "./store.ts";
import { shardsOf, type Config } from "#app/config/config.ts";
import { flightCalls } from "#app/peers/flight-calls.ts";
import { liveCalls } from "#app/peers/live-streams.ts";
import { publisherOf } from "#app/work/publishers.ts";
import { version } from "#app/version.ts";
import { directoryCalls } from "#app/peers/wire-directory.ts";
import { memoryLimits, memorySettings, processMemory } from "#app/work/work-memory.ts";
import type { WorkMetrics } from "#app/record/work-metrics.ts";
import { readyCalls } from "#app/work/work-sources.ts";

export type NodeParts = {
  readonly config: Config;
  readonly name: string;
  readonly journal: Journal;
  readonly stored: Pick<ComposedStore, "blobs" | "pins" | "index" | "streams">;
  readonly tcp: TcpTransport;
  readonly clock: Clock;
  readonly random: Random;
  /** What the work of all shards here may take. */
  readonly memory: Memory;
  readonly observers: readonly ShardObserver[];
  readonly metrics: Pick<WorkMetrics, "publicationRefused">;
  /** Where this node and others say which actions they run. */
  readonly desk: Desk;
  readonly log: (line: string) => void;
};

/** `actions` is 1 where actions of builds are run, and `sandbox` says what in. */
type WorkerFacts = Partial<ReturnType<Worker["status"]>> & {
  readonly actions: number;
  readonly sandbox: string | undefined;
};

/** A node serves its shards and, through its router, everybody's; it asks itself without the network. */
export function joinNode(parts: NodeParts, workerFacts: () => WorkerFacts) {
  const { config, name, journal, stored, tcp, clock, random, memory, observers, metrics, desk, log } = parts;
  const { blobs, pins, index } = stored;
  const published = buildPublisher({
    index,
    wallMs: () => clock.wallMs(),
    refused: ({ door, shard, task }, why) => {
      metrics.publicationRefused(door);
      log(`the result of ${formatTask(shard, task)} is not published: ${why}`);
    },
  });
  const calls = {
    ...directoryCalls(journal, () => node.status()),
    ...readyCalls(() => node),
    ...liveCalls(stored.streams),
    ...flightCalls(desk),
  };
  const listen = (service: ShardService) => tcp.listen(service, { routed: routedBy(router), calls });
  const node: Node = createNode({
    id: name,
    clock,
    journal,
    blobs,
    pins,
    observers,
    random: random.fork("node"),
    transport: { ...tcp, listen },
    cluster: { shards: shardsOf(config), clusterId: config.cluster.name },
    limits: ({ shards }) => ({ ...limitsOf(config, shards), ...memoryLimits(memory.bytesMax, shards) }),
    memory,
    host: memorySettings(processMemory(), shardsOf(config)),
    keeper: { leaseMs: config.cluster.ownerLease },
    retention: { keepMs: config.history.keep },
    publisher: publisherOf({ [buildDoor]: published, [buildsDoor]: published }, log),
    facts: () => {
      const { slots = 0, running = 0, actions, sandbox } = workerFacts();
      return { version, pid: process.pid, slots, running, actions, ...(sandbox && { sandbox }) };
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

/** For requests that come in through this node's router: shorter than the caller's own patience. */
const routedMs = 8_000;

/** What a caller that knows only this node gets: never "ask another". */
const routedBy = (router: Router): ShardService => ({
  request: (request, signal) => {
    const heldMs = request.kind === "command" ? (request.waitMs ?? 0) : 0;
    return router.request(request, { deadlineMs: routedMs + heldMs, ...(signal && { signal }) });
  },
  watch: (request, signal) => router.watch(request, signal),
});

/** A shard's part of what the cluster takes in. */
export const limitsOf = ({ cluster }: Config, shards: number): Limits => ({
  ...defaultLimits,
  queuedMax: cluster.queuedMax,
  tenantBytesMax: cluster.tenantMemoryMax ?? 0,
  ...(cluster.tasksMax !== undefined && { tasksMax: Math.ceil(cluster.tasksMax / shards) }),
});
