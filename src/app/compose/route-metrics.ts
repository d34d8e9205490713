/** Metrics of the routes under /v1, by endpoint: never by the path that was asked for, which callers choose. */
import type { MetricsRegistry } from "#edge/metrics/registry.ts";
import type { HttpPorts } from "#http/serve.ts";

export function routeMetrics(registry: MetricsRegistry): Required<Pick<HttpPorts, "ended">> {
  const requests = registry.counter({
    name: "millrace_http_requests_total",
    help: "Calls of the HTTP API, by endpoint and status.",
    labels: ["endpoint", "status"],
    seriesMax: 2_000,
  });
  const seconds = registry.histogram({
    name: "millrace_http_request_seconds",
    help: "Time until the HTTP API began to answer, by endpoint.",
    labels: ["endpoint"],
    bounds: [0.005, 0.025, 0.1, 0.5, 2, 10],
    seriesMax: 300,
  });
  return {
    ended({ endpoint, status, tookMs }) {
      requests.with(endpoint, String(status)).add();
      seconds.with(endpoint).observe(tookMs / 1_000);
    },
  };
}
