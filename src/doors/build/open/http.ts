/** Everything that this door serves over HTTP: the caches of build tools, their upkeep, builds, and why. */
import type { Metrics, OpenDoor } from "#door/door.ts";
import type { DoorPorts } from "#door/ports.ts";
import { cacheAdmin } from "#doors/build/admin/admin.ts";
import { httpBuilds } from "#doors/build/builds/http-builds.ts";
import type { BuildsService } from "#doors/build/builds/service.ts";
import type { TrustRules } from "#doors/build/cache/trust-rules.ts";
import type { ExecutionPorts } from "#doors/build/execute/execution-ports.ts";
import { idleMsDefault } from "#doors/build/http/body.ts";
import { httpCaches, type EndedCall } from "#doors/build/http/http-caches.ts";
import type { BuildSettings } from "#doors/build/settings.ts";
import { httpWhy } from "#doors/build/why/http-why.ts";
import type { Seen } from "#doors/build/why/seen.ts";
import { HttpCallers } from "./callers.ts";

export type HttpParts = {
  readonly settings: BuildSettings;
  readonly execution: ExecutionPorts | undefined;
  /** Undefined without execution. */
  readonly builds: BuildsService | undefined;
  readonly trust: TrustRules;
  readonly seen: Seen;
  /** How long an upload may stand still. */
  readonly idleMs?: number | undefined;
};

type Serve = (request: Request) => Promise<Response> | undefined;

/** In this order: the caches come last, because Bazel's paths may begin with anything. */
export function openHttp(
  ports: Pick<DoorPorts, "clock" | "stored" | "spool" | "warn">,
  { settings, execution, builds, trust, seen, idleMs = idleMsDefault }: HttpParts,
): Required<Pick<OpenDoor, "http" | "metrics">> {
  const { clock, stored, spool, warn } = ports;
  const { store, index, upkeep } = stored;
  const callers = new HttpCallers();
  const report = (error: unknown): void => warn("build-cache-trouble", { reason: "serve an HTTP cache", error });
  const limits = { bytesMax: settings.blobBytesMax, idleMs, spoolBytesMax: spool.bytesMax };
  const counts: { ended: (call: EndedCall) => void } = { ended: () => {} };
  const common = { store, index, clock, report, seen, trust };
  const served: Serve[] = [];
  if (upkeep) served.push(cacheAdmin({ ...common, upkeep, limits, caller: callers.http }));
  if (execution && builds) {
    served.push(httpBuilds({ service: builds, caller: callers.build, report }));
    served.push(httpWhy({ ...common, client: execution.client, builds, caller: callers.build }));
  }
  served.push(
    httpCaches({
      ...stored.counted("http"),
      trust,
      clock,
      spoolFolder: spool.folder,
      limits,
      ended: (call) => counts.ended(call),
      caller: callers.http,
      report,
    }),
  );
  return {
    http(request, identify) {
      const asked = callers.from(request, identify);
      for (const serve of served) {
        const response = serve(asked);
        if (response) return response;
      }
      return undefined;
    },
    metrics: (metrics) => void (counts.ended = countedIn(metrics)),
  };
}

const methods: ReadonlySet<string> = new Set(["GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PROPFIND", "MKCOL"]);

function countedIn(metrics: Metrics): (call: EndedCall) => void {
  const requests = metrics.counter({
    name: "millrace_http_cache_requests_total",
    help: "Requests of build tools to their HTTP caches, by protocol, method and status.",
    labels: ["protocol", "method", "status"],
    seriesMax: 300,
  });
  return ({ protocol, method, status }) =>
    requests.with(protocol, methods.has(method) ? method : "other", String(status)).add();
}
