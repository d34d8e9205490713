/** The port that serves everything: gRPC, HTTP/2 and HTTP/1.1. */
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import { tokenSha256 } from "#edge/identity/bearer.ts";
import { startEdge, type Edge } from "#edge/edge.ts";
import { Log } from "#edge/log/log.ts";
import type { MetricsRegistry } from "#edge/metrics/registry.ts";
import type { OwnTokens } from "#edge/identity/jwt/verifier.ts";
import type { Action } from "#access/policy.ts";
import type { ServeElsewhere } from "#edge/port/routes.ts";
import type { Journal } from "#journal/journal.ts";
import type { KindTable } from "#shard/door-kinds.ts";
import { serveWork } from "#shard/transport/grpc-serve.ts";
import type { Node } from "#shard/node.ts";
import type { ShardService } from "#shard/transport/protocol.ts";
import { workCalls } from "#shard/work/calls.ts";
import { Work } from "#wire/generated/millrace/work/v1/work.ts";
import type { TaskCallers } from "#worker/sandbox/task-callers.ts";
import { identifyBy } from "./identify.ts";
import { noDoors, type OpenDoors } from "./doors.ts";
import type { PeersView } from "./mesh.ts";
import { composeApi, type ApiParts } from "./api.ts";
import type { Config } from "#app/config/config.ts";
import { kindTable } from "#app/door-kinds.ts";
import { placeLimitsOf } from "#app/config/connections-config.ts";
import type { Drain } from "#app/node/drain.ts";
import { untilLeaving } from "#app/peers/held-calls.ts";
import { edgeAddressDefault, parseEdgeAddress } from "#app/config/edge-config.ts";
import { meshMetrics } from "#app/record/mesh-metrics.ts";
import { peersRoute } from "#app/peers/mesh-routes.ts";
import { bodyBytesMax, processMemory } from "#app/work/work-memory.ts";
import { serveEvents } from "#app/work/events-service.ts";
import { serveStreams, type StreamServicePorts } from "#app/work/stream-service.ts";
import { serveTasks, type TaskServicePorts } from "#app/work/task-service.ts";
import { workPolicy } from "#app/work/work-policy.ts";

export type EdgeParts = {
  readonly clock: Clock;
  readonly node: Node;
  readonly routed: ShardService;
  readonly journal: Journal;
  /** Left out: there are none. */
  readonly doors?: OpenDoors | undefined;
  /** Which work may be submitted; left out: of this program's doors. */
  readonly kinds?: KindTable | undefined;
  /** Aborted when the edge closes: held calls end. */
  readonly leaving?: AbortController | undefined;
  /** Why the node cannot take work. */
  readonly notReady: () => readonly string[];
  /** The members of the mesh; undefined if there is none. */
  readonly peers?: (() => PeersView | undefined) | undefined;
  /** Takes the node out of service; left out: it cannot be drained. */
  readonly drain?: Drain | undefined;
  /** Shows the node's metrics of its work; left out: only the edge's own are shown. */
  readonly show?: ((registry: MetricsRegistry) => void) | undefined;
  /** What the HTTP API under /v1 asks; left out: there is none. */
  readonly api?:
    | Pick<
        ApiParts,
        | "name"
        | "work"
        | "feed"
        | "webhooks"
        | "doors"
        | "live"
        | "blobs"
        | "status"
        | "vaults"
        | "schedules"
        | "effects"
        | "audit"
        | "keeps"
        | "records"
        | "resultsKeptMs"
        | "issuer"
        | "artifacts"
        | "checkpoints"
        | "registry"
      >
    | undefined;
  /** A Unix socket to serve on if `edge.listen` names no port, so that commands on this machine reach the node. */
  readonly socket?: string | undefined;
  /** The token of the data folder; left out: none is known. */
  readonly owner?: string | undefined;
  /** Opens tokens that this cluster issues; left out: it issues none. */
  readonly own?: OwnTokens | undefined;
  /** Knows which local callers are tasks of this node; left out: there are no tasks. */
  readonly callers?: TaskCallers | undefined;
  /** Takes what executors elsewhere print; left out: they cannot send it. */
  readonly streams?: StreamServicePorts | undefined;
  /** Answers executors elsewhere about tasks that they hold; left out: they cannot ask. */
  readonly tasks?: Pick<TaskServicePorts, "client" | "issuer"> | undefined;
  readonly log: (line: string) => void;
};

/** The caller must be authenticated; the tenant is checked when the request has been read. */
const workActions = new Map<string, Action>(
  [...workCalls.map(({ method }) => method), Work.methods.watch, Work.methods.getPartitionMap].map(({ path }) => [
    path,
    "service.describe",
  ]),
);

export type ServedEdge = Edge & {
  /** Where it listens, as host:port. */
  readonly addresses: readonly string[];
  /** The Unix socket that it serves on, if it listens on no port. */
  readonly socket: string | undefined;
};

export async function composeEdge(config: Config, parts: EdgeParts): Promise<ServedEdge | undefined> {
  const { listen } = config.edge;
  if (listen) return listen.length === 0 && parts.socket === undefined ? undefined : await serve(config, listen, parts);
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

async function serve({ edge, work }: Config, listen: readonly string[], parts: EdgeParts): Promise<ServedEdge> {
  const { clock, node, routed, journal, peers = () => undefined, doors = noDoors, kinds = kindTable, log } = parts;
  const { leaving = new AbortController(), owner, callers } = parts;
  const edgeLog = new Log((line) => log(line.trimEnd()), clock);
  const served = { routes: doors.routes, printed: doors.printed, bounds: work, kinds, drain: parts.drain };
  const { entries } = journal;
  const api = parts.api && (await composeApi({ ...parts.api, ...served, clock, log: edgeLog, entries }));
  const socket = listen.length === 0 ? parts.socket : undefined;
  const opened = await startEdge({
    clock,
    listen: socket === undefined ? listen.map(parseEdgeAddress) : [{ socket }],
    identity: edge.identity,
    ...(owner !== undefined && { owner: { sha256: tokenSha256(owner) } }),
    ...(parts.own && { own: parts.own }),
    ...(callers && { tasks: ({ ends }) => callers.isTask(ends) }),
    tls: edge.tls,
    h2: edge.limits,
    slots: placeLimitsOf(edge.connections, edge.identity),
    notReady: parts.notReady,
    bodyBytesMax: bodyBytesMax(processMemory()),
    log: edgeLog,
    entries,
    services(server, admission) {
      serveWork(server, {
        service: untilLeaving(node, leaving.signal),
        routed: untilLeaving(routed, leaving.signal),
        narrow: workPolicy(admission, { bounds: work, kinds }),
        async map() {
          const [ownerships, nodes] = await Promise.all([journal.ownerships(), journal.nodes()]);
          return { cluster: node.cluster, ownerships, nodes };
        },
      });
      const { feed } = parts.api ?? {};
      const feeding = feed && serveEvents(server, admission, feed, leaving.signal);
      const streaming = parts.streams && serveStreams(server, admission, parts.streams);
      const tasks = parts.tasks && serveTasks(server, admission, { ...parts.tasks, clock, answers: doors.answers });
      return new Map([
        ...workActions,
        ...(streaming ?? []),
        ...(tasks ?? []),
        ...(feeding ?? []),
        ...doors.services(server),
      ]);
    },
    http(admission, registry, login) {
      parts.show?.(registry);
      doors.metrics(registry);
      meshMetrics(registry, peers);
      const table = api?.(admission, registry, login);
      const serve = mounted({
        peers: peersRoute(admission, peers),
        api: table?.serve,
        doors: (request, peer) => doors.http(request, identifyBy(admission, peer)),
      });
      return { ...table, serve };
    },
  });
  return {
    ...opened,
    socket,
    addresses: listen.map((address, i) => `${address.slice(0, address.lastIndexOf(":"))}:${opened.ports[i]}`),
    close() {
      leaving.abort(new Fault("unavailable", "hold a call", { why: "the node is stopping" }));
      return opened.close();
    },
  };
}

/** All that a node serves over plain HTTP besides the edge's own; each is asked in this order. */
export const mounts = ["peers", "api", "doors"] as const;

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
