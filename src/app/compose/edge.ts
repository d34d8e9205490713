/** The port that serves everything: gRPC, HTTP/2 and HTTP/1.1. */
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { ExecutionPorts } from "#doors/build/execute/execution-ports.ts";
import { spoolIn } from "#doors/build/http/spool.ts";
import { buildTable } from "#doors/build/http/table.ts";
import { buildSettingsDefault } from "#doors/build/settings.ts";
import type { Seen } from "#doors/build/why/seen.ts";
import { tokenSha256 } from "#edge/identity/bearer.ts";
import { startEdge, type Edge } from "#edge/edge.ts";
import { Log } from "#edge/log/log.ts";
import type { MetricsRegistry } from "#edge/metrics/registry.ts";
import type { Action } from "#access/policy.ts";
import type { ServeElsewhere } from "#edge/port/routes.ts";
import type { Journal } from "#journal/journal.ts";
import { serveWork } from "#shard/transport/grpc-serve.ts";
import type { Node } from "#shard/node.ts";
import type { ShardService } from "#shard/transport/protocol.ts";
import { workCalls } from "#shard/work/calls.ts";
import { Work } from "#wire/generated/millrace/work/v1/work.ts";
import type { TaskCallers } from "#worker/sandbox/task-callers.ts";
import { buildSettings, composeBuild, type BuildParts } from "./build.ts";
import { composeHttpCaches } from "./http-caches.ts";
import type { PeersView } from "./mesh.ts";
import { composeApi, type ApiParts } from "./api.ts";
import type { ComposedStore } from "./store.ts";
import type { Config } from "#app/config/config.ts";
import { placeLimitsOf } from "#app/config/connections-config.ts";
import type { Drain } from "#app/node/drain.ts";
import { untilLeaving } from "#app/peers/held-calls.ts";
import type { NodeMetrics } from "#app/record/node-metrics.ts";
import { edgeAddressDefault, parseEdgeAddress } from "#app/config/edge-config.ts";
import { meshMetrics } from "#app/record/mesh-metrics.ts";
import { peersRoute } from "#app/peers/mesh-routes.ts";
import { bodyBytesMax, processMemory } from "#app/work/work-memory.ts";
import { workPolicy } from "#app/work/work-policy.ts";

export type EdgeParts = {
  readonly clock: Clock;
  readonly node: Node;
  readonly routed: ShardService;
  readonly journal: Journal;
  /** What the build cache is kept in; left out: there is none. */
  readonly cache?:
    | (Pick<BuildParts, "store" | "index" | "execution"> &
        Pick<ComposedStore, "observe" | "upkeep"> & {
          readonly spoolFolder: string;
          readonly spoolBytesMax: number;
          readonly seen: Seen;
        })
    | undefined;
  /** What keeps the node from taking work. */
  readonly notReady: () => readonly string[];
  /** Who is in the mesh; undefined when there is none. */
  readonly peers?: (() => PeersView | undefined) | undefined;
  /** Takes the node out of service; left out: it cannot be asked to. */
  readonly drain?: Drain | undefined;
  /** What the node counts of its work; left out: only what the edge counts is shown. */
  readonly metrics?: EdgeMetricsPart | undefined;
  /** What the HTTP API under /v1 asks; left out: there is none. */
  readonly api?: Pick<ApiParts, "name" | "work" | "live"> | undefined;
  /** The token of the data folder; left out: none is known. */
  readonly owner?: string | undefined;
  /** Knows which callers on this machine are tasks of this node; left out: there are no tasks. */
  readonly callers?: TaskCallers | undefined;
  readonly log: (line: string) => void;
};

export type EdgeMetricsPart = Pick<NodeMetrics, "countedFor" | "stored"> & {
  show(registry: MetricsRegistry): void;
};

/** Whoever calls must be known; what they may ask of which tenant is judged when the request has been read. */
const workActions = new Map<string, Action>(
  [...workCalls.map(({ method }) => method), Work.methods.watch, Work.methods.getPartitionMap].map(({ path }) => [
    path,
    "service.describe",
  ]),
);

export type ServedEdge = Edge & {
  /** Where it listens, as host:port. */
  readonly addresses: readonly string[];
};

export async function composeEdge(config: Config, parts: EdgeParts): Promise<ServedEdge | undefined> {
  const { listen } = config.edge;
  if (listen) return listen.length === 0 ? undefined : await serve(config, listen, parts);
  try {
    return await serve(config, [edgeAddressDefault], parts);
  } catch (error) {
    if (!isFault(error, "exhausted") || error.doing !== "listen") throw error;
  }
  const { host } = parseEdgeAddress(edgeAddressDefault);
  const served = await serve(config, [`${host}:0`], parts);
  parts.log(
    `another program listens on ${edgeAddressDefault}: this node serves on ${served.addresses.join()} instead; ` +
      "choose a port with edge.listen to have the same one at every start",
  );
  return served;
}

async function serve({ edge, build, work }: Config, listen: readonly string[], parts: EdgeParts): Promise<ServedEdge> {
  const { clock, node, routed, journal, cache, peers = () => undefined, log } = parts;
  const leaving = new AbortController();
  const edgeLog = new Log((line) => log(line.trimEnd()), clock);
  const seen = cache?.seen;
  const trouble = (doing: string, error: unknown): void =>
    edgeLog.warn("build-cache-trouble", { reason: doing, error });
  const { metrics, owner, callers } = parts;
  const looked =
    metrics && ((tenant: string, outcome: "hit" | "miss") => metrics.stored.looked("build", tenant, outcome));
  const settings = {
    ...buildSettings(build, edge.identity),
    ...(seen && { seen }),
    ...(looked && { looked }),
    clock,
    report: trouble,
  };
  const counted = (door: string) => (cache && metrics ? metrics.countedFor(cache, door) : cache);
  const spool = cache && spoolIn(cache.spoolFolder, cache.spoolBytesMax);
  const routes =
    cache && seen
      ? buildTable({
          ...cache,
          seen,
          clock,
          settings: { ...buildSettingsDefault, ...settings.settings },
          execution: until(cache.execution, leaving.signal),
        })
      : [];
  const { entries } = journal;
  const api =
    parts.api && (await composeApi({ ...parts.api, clock, log: edgeLog, entries, drain: parts.drain, routes }));
  const opened = await startEdge({
    clock,
    listen: listen.map(parseEdgeAddress),
    identity: edge.identity,
    ...(owner !== undefined && { owner: { sha256: tokenSha256(owner) } }),
    ...(callers && { tasks: ({ ends }) => callers.isTask(ends) }),
    tls: edge.tls,
    h2: edge.limits,
    places: placeLimitsOf(edge.connections, edge.identity),
    notReady: parts.notReady,
    bodyBytesMax: bodyBytesMax(processMemory()),
    log: edgeLog,
    entries: journal.entries,
    services(server, admission) {
      serveWork(server, {
        service: untilLeaving(node, leaving.signal),
        routed: untilLeaving(routed, leaving.signal),
        narrow: workPolicy(admission, work),
        async map() {
          const [ownerships, nodes] = await Promise.all([journal.ownerships(), journal.nodes()]);
          return { cluster: node.cluster, ownerships, nodes };
        },
      });
      return new Map([
        ...workActions,
        ...(cache
          ? composeBuild(server, {
              ...cache,
              store: counted("build")?.store ?? cache.store,
              ...settings,
              spool,
              execution: until(cache.execution, leaving.signal),
            })
          : []),
      ]);
    },
    http(admission, registry, login) {
      cache?.observe?.(registry);
      metrics?.show(registry);
      const table = api?.(admission, registry, login);
      const always = {
        peers: peersRoute(admission, peers),
        api: table?.serve,
      };
      meshMetrics(registry, peers);
      const upgrade = table?.upgrade && { upgrade: table.upgrade };
      if (!cache) return { serve: mounted({ ...always, caches: undefined }), ...upgrade };
      const limits = { bytesMax: build.blobMax };
      const report = (error: unknown): void => trouble("serve an HTTP cache", error);
      const cachesServed = composeHttpCaches(
        { ...cache, ...counted("http"), clock, report, limits, spool },
        admission,
        registry,
      );
      return { serve: mounted({ ...always, caches: cachesServed }), ...upgrade };
    },
  });
  return {
    ...opened,
    addresses: listen.map((address, i) => `${address.slice(0, address.lastIndexOf(":"))}:${opened.ports[i]}`),
    close() {
      leaving.abort(new Fault("unavailable", "hold a call", { why: "the node is stopping" }));
      return opened.close();
    },
  };
}

/** All that a node serves over plain HTTP besides the edge's own; each is asked in this order. */
export const mounts = ["peers", "api", "caches"] as const;

type Mounted = Readonly<Record<(typeof mounts)[number], ServeElsewhere | undefined>>;

function mounted(served: Mounted): ServeElsewhere {
  return (request, peer) => {
    for (const mount of mounts) {
      const response = served[mount]?.(request, peer);
      if (response) return response;
    }
    return undefined;
  };
}

const until = (execution: ExecutionPorts | undefined, leaving: AbortSignal): ExecutionPorts | undefined =>
  execution && { ...execution, leaving };
