/** The HTTP caches of build tools behind the edge. */
import { httpCaches, type HttpCachesOptions } from "#doors/build/http/http-caches.ts";
import type { Admission } from "#edge/port/admission.ts";
import type { MetricsRegistry } from "#edge/metrics/registry.ts";
import type { ServeElsewhere } from "#edge/port/routes.ts";
import { identifyBy } from "./identify.ts";

export function composeHttpCaches(
  parts: Omit<HttpCachesOptions, "ended">,
  admission: Admission,
  registry: MetricsRegistry,
): ServeElsewhere {
  const requests = registry.counter({
    name: "millrace_http_cache_requests_total",
    help: "Requests of build tools to their HTTP caches, by protocol, method and status.",
    labels: ["protocol", "method", "status"],
    seriesMax: 300,
  });
  const serve = httpCaches({
    ...parts,
    ended: ({ protocol, method, status }) => requests.with(protocol, known(method), String(status)).add(),
  });
  return (request, peer) => serve(request, identifyBy(admission, peer));
}

const methods: ReadonlySet<string> = new Set(["GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PROPFIND", "MKCOL"]);
const known = (method: string): string => (methods.has(method) ? method : "other");
