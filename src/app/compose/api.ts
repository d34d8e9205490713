/** The HTTP API under /v1 and the console, behind the edge. */
import { fileURLToPath } from "node:url";
import type { Clock } from "#base/clock.ts";
import { clusterEndpoints } from "#api/cluster.ts";
import { jobsEndpoints } from "#api/jobs.ts";
import { showOpenApi } from "#api/openapi.ts";
import { showSession } from "#api/session.ts";
import type { Admission } from "#edge/port/admission.ts";
import type { Log } from "#edge/log/log.ts";
import type { MetricsRegistry } from "#edge/metrics/registry.ts";
import type { ServeElsewhere } from "#edge/port/routes.ts";
import type { Door } from "#door/door.ts";
import type { Endpoint } from "#http/endpoint.ts";
import { KeptAnswersInMemory } from "#http/kept-answers-memory.ts";
import { openApiDocument } from "#http/openapi.ts";
import { route, type Route } from "#http/route.ts";
import { serveRoutes } from "#http/serve.ts";
import type { WorkClient } from "#shard/client/client.ts";
import { tenantEndpoints } from "#api/tenants.ts";
import { clusterRoutes, type ClusterPorts } from "#app/api/cluster.ts";
import { openConsole } from "#app/api/console-files.ts";
import { jobsRoutes, type JobsPorts } from "#app/api/jobs.ts";
import { rejectionProblem } from "#app/api/rejection-problem.ts";
import { tenantRoutes } from "#app/api/tenants.ts";
import { identifyBy } from "./identify.ts";
import { doors } from "#app/doors.ts";
import { version } from "#app/version.ts";

export type ApiParts = {
  readonly name: string;
  readonly work: WorkClient;
  readonly clock: Clock;
  readonly log: Log;
  /** Routes of doors, and the doors that declare them. */
  readonly routes?: readonly Route[] | undefined;
  readonly doors?: readonly Door[] | undefined;
} & Pick<ClusterPorts, "status"> &
  Pick<JobsPorts, "live" | "printed" | "bounds" | "kinds">;

/** Every endpoint that this node serves from the route table, for the OpenAPI document and the reference. */
export const apiEndpointsOf = (of: readonly Door[]): readonly Endpoint[] => [
  ...jobsEndpoints,
  ...clusterEndpoints,
  ...tenantEndpoints,
  ...of.flatMap(({ endpoints }) => endpoints),
  showSession,
  showOpenApi,
];

export const apiEndpoints = apiEndpointsOf(doors);

export const apiDocument = (of: readonly Door[] = doors): object =>
  openApiDocument(apiEndpointsOf(of), {
    title: "Millrace",
    version,
    description: "Jobs, their stages and tasks, and the cluster that runs them.",
  });

const keptMs = 24 * 3_600_000;
const busyMs = 60_000;
const keptMax = 10_000;

const consoleFolder = fileURLToPath(new URL("../../console/dist", import.meta.url));

export async function composeApi(parts: ApiParts): Promise<ComposedApi> {
  const { name, work, clock, log, status } = parts;
  const document = apiDocument(parts.doors);
  const routes = [
    ...jobsRoutes({ ...parts, doors: parts.doors ?? doors }),
    ...clusterRoutes({ name, work, status }),
    ...tenantRoutes(work),
    ...(parts.routes ?? []),
    route(showSession, ({ caller: { principal } }) => {
      const { name: caller, tenant, roles, proof } = principal;
      return { body: { name: caller, tenant, roles: [...roles], proof } };
    }),
    route(showOpenApi, () => ({ body: document as { openapi: string } })),
  ];
  const pages = await openConsole(consoleFolder);
  return (admission, registry) => {
    const requests = registry.counter({
      name: "millrace_http_requests_total",
      help: "Calls of the HTTP API, by endpoint and status.",
      labels: ["endpoint", "status"],
      seriesMax: 1_000,
    });
    const serve = serveRoutes(routes, {
      clock,
      kept: new KeptAnswersInMemory({ wallMs: () => clock.wallMs(), keptMs, busyMs, entriesMax: keptMax }),
      report: (endpoint, error) => log.error("call-failed", { method: endpoint, error }),
      asProblem: rejectionProblem,
      ended: ({ endpoint, status }) => requests.with(endpoint, String(status)).add(),
    });
    return (request, peer) => {
      const page = pages(request);
      return page ? Promise.resolve(page) : serve(request, identifyBy(admission, peer));
    };
  };
}

export type ComposedApi = (admission: Admission, registry: MetricsRegistry) => ServeElsewhere;
