/** Everything that this door serves over HTTP: the caches of build tools, their upkeep, builds, and why. */
import type { Metrics, OpenDoor } from "#door/door.ts";
import type { DoorPorts } from "#door/ports.ts";
import type { BuildsService } from "#doors/build/builds/service.ts";
import type { TrustRules } from "#doors/build/cache/trust-rules.ts";
import type { ExecutionPorts } from "#doors/build/execute/execution-ports.ts";
import { httpCaches, type EndedCall } from "#doors/build/http/http-caches.ts";
import type { Spool } from "#blobs/spool.ts";
import { buildTable } from "#doors/build/http/table.ts";
import type { BuildSettings } from "#doors/build/settings.ts";
import type { Seen } from "#doors/build/why/seen.ts";
import { bodyIdleMsDefault } from "#http/body.ts";

export type HttpParts = {
  readonly settings: BuildSettings;
  readonly execution: ExecutionPorts | undefined;
  /** Undefined without execution. */
  readonly builds: BuildsService | undefined;
  readonly trust: TrustRules;
  readonly seen: Seen;
  readonly spool: Spool;
  /** How long an upload may stand still. */
  readonly idleMs?: number | undefined;
};

export function openHttp(
  { clock, stored, warn }: Pick<DoorPorts, "clock" | "stored" | "warn">,
  { settings, execution, builds, trust, seen, spool, idleMs = bodyIdleMsDefault }: HttpParts,
): Required<Pick<OpenDoor, "routes" | "http" | "metrics">> {
  const { store, index, upkeep } = stored;
  const counts: { ended: (call: EndedCall) => void } = { ended: () => {} };
  return {
    routes: buildTable({ store, index, upkeep, clock, seen, settings, execution, builds, trust }),
    http: httpCaches({
      ...stored.counted("http"),
      trust,
      clock,
      spool,
      limits: { bytesMax: settings.blobBytesMax, idleMs },
      ended: (call) => counts.ended(call),
      report: (error) => warn("build-cache-trouble", { reason: "serve an HTTP cache", error }),
    }),
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
