/** The HTTP API under /v1 and the console, behind the edge. */
import { fileURLToPath } from "node:url";
import type { Clock } from "#base/clock.ts";
import type { Entries } from "#base/entries.ts";
import { clusterWatchRoutes } from "#app/api/cluster-watch.ts";
import { clusterRoutes } from "#app/api/cluster.ts";
import { openConsole } from "#app/api/console-files.ts";
import { drainRoutes } from "#app/api/drain.ts";
import { jobSocketRoutes } from "#app/api/job-socket.ts";
import { jobsRoutes } from "#app/api/jobs.ts";
import { movedTo } from "#app/api/moved.ts";
import { outputRoutes, type OutputPorts } from "#app/api/output.ts";
import { rejectionProblem } from "#app/api/rejection-problem.ts";
import { sessionRoutes } from "#app/api/session.ts";
import type { Drain } from "#app/node/drain.ts";
import { version } from "#app/version.ts";
import { watchCluster } from "#api/cluster-watch.ts";
import { clusterEndpoints } from "#api/cluster.ts";
import { drainEndpoints } from "#api/drain.ts";
import { jobSocket } from "#api/job-socket.ts";
import { jobsEndpoints } from "#api/jobs.ts";
import { showOpenApi } from "#api/openapi.ts";
import { watchOutput } from "#api/output.ts";
import { sessionEndpoints } from "#api/session.ts";
import { buildEndpoints } from "#doors/build/http/table.ts";
import type { HttpServed, Login } from "#edge/edge.ts";
import type { Log } from "#edge/log/log.ts";
import type { MetricsRegistry } from "#edge/metrics/registry.ts";
import type { Admission } from "#edge/port/admission.ts";
import type { Endpoint } from "#http/endpoint.ts";
import { keptAnswersIn } from "#http/kept-answers.ts";
import { openApiDocument } from "#http/openapi.ts";
import { route, type Route } from "#http/route.ts";
import { serveRoutes } from "#http/serve.ts";
import { serveUpgrades } from "#http/upgrade.ts";
import type { WorkClient } from "#shard/client/client.ts";
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
  readonly live?: OutputPorts["live"];
  /** What doors serve besides. */
  readonly routes?: readonly Route[] | undefined;
};

/** Every endpoint that this node serves from the route table, for the OpenAPI document and the reference. */
export const apiEndpoints: readonly Endpoint[] = [
  ...jobsEndpoints,
  watchOutput,
  jobSocket,
  ...clusterEndpoints,
  watchCluster,
  ...drainEndpoints,
  ...buildEndpoints,
  ...sessionEndpoints,
  showOpenApi,
];

export const apiDocument = (): object =>
  openApiDocument(apiEndpoints, {
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
    const upgrade = serveUpgrades(routes, { ...ports, socketsMax });
    return {
      serve(request, peer) {
        const page = pages(request) ?? movedTo(request);
        return page ? Promise.resolve(page) : serve(request, identifyBy(admission, peer));
      },
      upgrade: (request, socket, head, peer) => upgrade(request, socket, head, identifyBy(admission, peer)),
    };
  };
}

/** The table: whatever is served under /v1. */
export function apiRoutes({ name, work, clock, drain, live, routes = [] }: ApiParts, login: Login): readonly Route[] {
  const document = apiDocument();
  const jobs = jobsRoutes({ work, clock });
  const cluster = clusterRoutes({ name, work });
  return [
    ...jobs,
    ...jobSocketRoutes(jobs),
    ...outputRoutes({ work, clock, live }),
    ...cluster,
    ...clusterWatchRoutes(cluster, clock),
    ...(drain ? drainRoutes(drain) : []),
    ...sessionRoutes(login),
    ...routes,
    route(showOpenApi, () => ({ body: document as { openapi: string } })),
  ];
}

export type ComposedApi = (admission: Admission, registry: MetricsRegistry, login: Login) => HttpServed;
