/** The HTTP API under /v1 and the console, behind the edge. */
import { fileURLToPath } from "node:url";
import type { Clock } from "#base/clock.ts";
import type { Entries } from "#base/entries.ts";
import { clusterWatchRoutes } from "#app/api/cluster-watch.ts";
import { clusterRoutes, type ClusterPorts } from "#app/api/cluster.ts";
import { openConsole } from "#app/api/console-files.ts";
import { drainRoutes } from "#app/api/drain.ts";
import { jobSocketRoutes } from "#app/api/jobs/job-socket.ts";
import { jobsRoutes, type JobsPorts } from "#app/api/jobs/jobs.ts";
import { movedTo } from "#app/api/moved.ts";
import { rejectionProblem } from "#app/api/jobs/rejection-problem.ts";
import { sessionRoutes } from "#app/api/session.ts";
import { audited, auditRoutes } from "#app/api/audit.ts";
import { webhooksRoutes, type WebhooksPorts } from "#app/api/webhooks.ts";
import { eventsRoutes } from "#app/api/events.ts";
import { schedulesRoutes } from "#app/api/schedules.ts";
import { secretRoutes } from "#app/api/secrets.ts";
import { effectRoutes } from "#app/api/effects.ts";
import { issuerRoutes } from "#app/api/issuer.ts";
import { keptRoutes } from "#app/api/kept.ts";
import { poolRoutes, type PoolRoutePorts } from "#app/api/pools.ts";
import { usageRoutes } from "#app/api/usage.ts";
import { taskRoutes } from "#app/api/task-calls.ts";
import type { JobArtifacts } from "#app/work/job-artifacts.ts";
import type { TaskCheckpoints } from "#app/work/task-checkpoints.ts";
import { workerRoutes } from "#app/api/workers.ts";
import type { WorkerRegistry } from "#app/workers/registry.ts";
import { tenantRoutes } from "#app/api/tenants.ts";
import { doors } from "#app/doors.ts";
import type { Drain } from "#app/node/drain.ts";
import { version } from "#app/version.ts";
import { watchCluster } from "#api/cluster-watch.ts";
import { clusterEndpoints } from "#api/cluster.ts";
import { drainEndpoints } from "#api/drain.ts";
import { jobSocket } from "#api/job-socket.ts";
import { jobsEndpoints } from "#api/jobs.ts";
import { showOpenApi } from "#api/openapi.ts";
import { sessionEndpoints } from "#api/session.ts";
import { webhookEndpoints } from "#api/webhooks.ts";
import { eventEndpoints } from "#api/events.ts";
import { auditEndpoints } from "#api/audit.ts";
import { scheduleEndpoints } from "#api/schedules.ts";
import { effectEndpoints } from "#api/effects.ts";
import { secretEndpoints } from "#api/secrets.ts";
import { issuerEndpoints } from "#api/issuer.ts";
import { keptEndpoints } from "#api/kept.ts";
import { poolEndpoints } from "#api/pools.ts";
import { usageEndpoints } from "#api/usage.ts";
import { artifactEndpoints, taskEndpoints } from "#api/task-calls.ts";
import { registerWorker, workerEndpoints } from "#api/workers.ts";
import { tenantEndpoints } from "#api/tenants.ts";
import type { Feed } from "#feed/feed.ts";
import type { Door } from "#door/door.ts";
import type { HttpServed, Login } from "#edge/edge.ts";
import type { Log } from "#edge/log/log.ts";
import type { MetricsRegistry } from "#edge/metrics/registry.ts";
import type { Admission } from "#edge/port/admission.ts";
import type { Endpoint } from "#http/endpoint.ts";
import { keptAnswersIn } from "#http/kept-answers.ts";
import { openApiDocument } from "#http/openapi.ts";
import { route, type Route } from "#http/route.ts";
import { serveRoutes } from "#http/serve.ts";
import { serveSockets } from "#http/live/upgrade.ts";
import type { WorkClient } from "#shard/client/client.ts";
import type { Issuer } from "#issuer/issuer.ts";
import type { AuditTrail } from "#audit/trail.ts";
import type { Keeps } from "#retention/keeps.ts";
import type { Records } from "#records/watch.ts";
import type { Schedules } from "#schedules/schedule.ts";
import type { Effects } from "#effects/effects.ts";
import type { Vaults } from "./services/vault.ts";
import { identifyBy } from "./identify.ts";
import { routeMetrics } from "./route-metrics.ts";

export type ApiParts = {
  readonly name: string;
  readonly work: WorkClient;
  readonly clock: Clock;
  readonly log: Log;
  /** Where answers of keyed requests are kept. */
  readonly entries: Entries;
  readonly drain?: Drain | undefined;
  /** Left out: there are no secrets. */
  readonly vaults?: Vaults | undefined;
  /** Left out: there are none. */
  readonly schedules?: Schedules | undefined;
  /** Left out: work has no ledger of effects. */
  readonly effects?: Effects | undefined;
  /** Left out: nothing is audited. */
  readonly audit?: AuditTrail | undefined;
  /** Left out: no tokens are issued. */
  readonly issuer?: Issuer | undefined;
  /** Workers that registered; left out: none can. */
  readonly registry?: WorkerRegistry | undefined;
  /** Pools of machines; left out: none are shown. */
  readonly pools?: PoolRoutePorts | undefined;
  /** What is kept until a time; left out: nothing is shown. */
  readonly keeps?: Keeps | undefined;
  /** Where usage is recorded; left out: it is not shown. */
  readonly records?: Records | undefined;
  /** What tasks put; left out: they cannot. */
  readonly artifacts?: JobArtifacts | undefined;
  /** What tasks record; left out with `artifacts`. */
  readonly checkpoints?: TaskCheckpoints | undefined;
  /** Left out: there is no event feed. */
  readonly feed?: Feed | undefined;
  /** Left out: there are none. */
  readonly webhooks?: WebhooksPorts | undefined;
  /** What doors serve besides, and the doors that declare it. */
  readonly routes?: readonly Route[] | undefined;
  readonly doors?: readonly Door[] | undefined;
} & Pick<ClusterPorts, "status" | "isolation" | "isolatedTenants" | "hotShards"> &
  Pick<JobsPorts, "live" | "blobs" | "printed" | "bounds" | "kinds" | "resultsKeptMs">;

/** Every endpoint that this node serves from the route table, for the OpenAPI document and the reference. */
export const apiEndpointsOf = (of: readonly Door[]): readonly Endpoint[] => [
  ...jobsEndpoints,
  ...artifactEndpoints,
  ...taskEndpoints,
  jobSocket,
  ...clusterEndpoints,
  watchCluster,
  ...drainEndpoints,
  ...tenantEndpoints,
  ...secretEndpoints,
  ...scheduleEndpoints,
  ...eventEndpoints,
  ...effectEndpoints,
  ...webhookEndpoints,
  ...auditEndpoints,
  ...issuerEndpoints,
  ...workerEndpoints,
  ...poolEndpoints,
  ...keptEndpoints,
  ...usageEndpoints,
  ...of.flatMap(({ endpoints }) => endpoints),
  ...sessionEndpoints,
  showOpenApi,
];

export const apiEndpoints = apiEndpointsOf(doors);

export const apiDocument = (of: readonly Door[] = doors): object =>
  openApiDocument(apiEndpointsOf(of), {
    title: "Millrace",
    version,
    description: "Jobs, their stages and tasks, and the cluster that runs them.",
  });

/** WebSockets that may be open at once. */
const socketsMax = 1_000;

const consoleFolder = fileURLToPath(new URL("../../console/dist", import.meta.url));

export async function composeApi(parts: ApiParts): Promise<ComposedApi> {
  const { clock, log, entries } = parts;
  const pages = await openConsole(consoleFolder);
  return (admission, registry, login) => {
    const routes = apiRoutes(parts, login);
    const ports = {
      clock,
      kept: keptAnswersIn(entries),
      report: (endpoint: string, error: unknown) => log.error("call-failed", { method: endpoint, error }),
      asProblem: rejectionProblem,
      ...routeMetrics(registry),
    };
    const serve = serveRoutes(routes, ports);
    const { upgrade, connect } = serveSockets(routes, { ...ports, socketsMax });
    return {
      serve(request, peer) {
        const page = pages(request) ?? movedTo(request);
        return page ? Promise.resolve(page) : serve(request, identifyBy(admission, peer));
      },
      upgrade: (request, socket, head, peer) => upgrade(request, socket, head, identifyBy(admission, peer)),
      connect: (request, wire, peer) => connect(request, wire, identifyBy(admission, peer)),
    };
  };
}

/** The table: everything that is served under /v1. */
export function apiRoutes(parts: ApiParts, login: Login): readonly Route[] {
  const { name, work, clock, status, drain, vaults, schedules, effects, feed } = parts;
  const { audit, issuer, artifacts, checkpoints, registry, keeps, records, routes = [] } = parts;
  const document = apiDocument(parts.doors);
  const jobs = jobsRoutes({ ...parts, doors: parts.doors ?? doors });
  const cluster = clusterRoutes({
    name,
    work,
    status,
    isolation: parts.isolation,
    isolatedTenants: parts.isolatedTenants,
    hotShards: parts.hotShards,
  });
  const table = [
    ...jobs,
    ...jobSocketRoutes(jobs),
    ...cluster,
    ...clusterWatchRoutes(cluster, clock),
    ...(drain ? drainRoutes(drain) : []),
    ...tenantRoutes(work),
    ...(vaults ? secretRoutes(vaults) : []),
    ...(effects ? effectRoutes({ effects, work }) : []),
    ...(schedules ? schedulesRoutes({ ...parts, schedules, doors: parts.doors ?? doors }) : []),
    ...(issuer ? issuerRoutes(issuer) : []),
    ...(registry ? workerRoutes({ registry, registered: recordedBy(audit, clock) }) : []),
    ...(parts.pools ? poolRoutes(parts.pools) : []),
    ...(keeps ? keptRoutes(keeps) : []),
    ...(keeps && records ? usageRoutes({ records, keeps, clock, prices: pricesIn(parts) }) : []),
    ...(artifacts && checkpoints ? taskRoutes({ work, artifacts, checkpoints }) : []),
    ...(feed ? eventsRoutes({ feed, clock }) : []),
    ...(parts.webhooks ? webhooksRoutes(parts.webhooks) : []),
    ...routes,
    ...sessionRoutes(login),
    route(showOpenApi, () => ({ body: document as { openapi: string } })),
    ...(audit ? auditRoutes(audit) : []),
  ];
  return audit ? audited(table, audit, clock) : table;
}

const pricesIn = ({ pools }: ApiParts): ReadonlyMap<string, number> =>
  new Map((pools?.pools ?? []).map(({ name, price }) => [name, price]));

/** A worker that registers has no credentials yet: what it is then called is recorded. */
const recordedBy =
  (audit: AuditTrail | undefined, clock: Clock) =>
  async (tenant: string, name: string, address: string): Promise<void> => {
    const who = { name, tenant, proof: "issued", address };
    const facts = { at: new Date(clock.wallMs()).toISOString(), who, of: { worker: name }, outcome: "asked" } as const;
    await audit?.append(tenant, { ...facts, action: registerWorker.action, call: registerWorker.name });
  };

export type ComposedApi = (admission: Admission, registry: MetricsRegistry, login: Login) => HttpServed;
