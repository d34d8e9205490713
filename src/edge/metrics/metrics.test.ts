import { deepEqual, equal, match, ok, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import { edgeMetrics, edgeMetricTable } from "./edge.ts";
import { processMetrics } from "./process.ts";
import { MetricsRegistry } from "./registry.ts";

const lines = (text: string): readonly string[] => text.trimEnd().split("\n");
const samples = (text: string): readonly string[] => lines(text).filter((line) => !line.startsWith("#"));

describe("metrics", () => {
  test("are written in the form that Prometheus reads", () => {
    const registry = new MetricsRegistry();
    const calls = registry.counter({ name: "calls_total", help: "Calls.", labels: ["method", "code"] });
    const submitted = calls.with("Submit", "OK");
    submitted.add();
    submitted.add(2);
    registry.gauge({ name: "open", help: "Open." }).with().set(-1.5);
    equal(
      registry.text(),
      `# HELP calls_total Calls.
# TYPE calls_total counter
calls_total{method="Submit",code="OK"} 3
# HELP open Open.
# TYPE open gauge
open -1.5
`,
    );
  });

  test("escape what would end a line or a value early", () => {
    const registry = new MetricsRegistry();
    registry
      .gauge({ name: "g", help: 'back\\slash\n"quoted"', labels: ["l"] })
      .with('a"b\\c\nd')
      .set(1);
    deepEqual(lines(registry.text()), [
      '# HELP g back\\\\slash\\n"quoted"',
      "# TYPE g gauge",
      'g{l="a\\"b\\\\c\\nd"} 1',
    ]);
  });

  test("write NaN and infinities as Prometheus does", () => {
    const registry = new MetricsRegistry();
    const gauge = registry.gauge({ name: "g", help: "", labels: ["l"] });
    for (const value of [Infinity, -Infinity, NaN, -0, 1e21, 0.1]) gauge.with(String(value)).set(value);
    deepEqual(
      samples(registry.text()).map((line) => line.split(" ")[1]),
      ["+Inf", "-Inf", "NaN", "0", "1e+21", "0.1"],
    );
  });

  test("count in ranges, made cumulative only when they are read", () => {
    const registry = new MetricsRegistry();
    const histogram = registry.histogram({ name: "h", help: "", labels: ["m"], bounds: [0.25, 1, 4] }).with("x");
    for (const value of [0.25, 0.5, 1, 2, 8, NaN]) histogram.observe(value);
    deepEqual(samples(registry.text()), [
      'h_bucket{m="x",le="0.25"} 1',
      'h_bucket{m="x",le="1"} 3',
      'h_bucket{m="x",le="4"} 4',
      'h_bucket{m="x",le="+Inf"} 5',
      'h_sum{m="x"} 11.75',
      'h_count{m="x"} 5',
    ]);
    const bare = new MetricsRegistry();
    bare
      .histogram({ name: "h", help: "", bounds: [1] })
      .with()
      .observe(3);
    deepEqual(samples(bare.text()), ['h_bucket{le="1"} 0', 'h_bucket{le="+Inf"} 1', "h_sum 3", "h_count 1"]);
  });

  test("have a limited number of series: the rest is `other`", () => {
    const registry = new MetricsRegistry();
    const family = registry.counter({ name: "c_total", help: "", labels: ["a", "b"], seriesMax: 3 });
    for (let caller = 0; caller < 10_000; caller += 1) family.with(`caller-${caller}`, "x").add();
    family.with("caller-1", "x").add();
    deepEqual(samples(registry.text()), [
      'c_total{a="caller-0",b="x"} 1',
      'c_total{a="caller-1",b="x"} 2',
      'c_total{a="caller-2",b="x"} 1',
      'c_total{a="other",b="other"} 9997',
    ]);
  });

  test("have labels of bounded length", () => {
    const registry = new MetricsRegistry();
    registry
      .counter({ name: "c_total", help: "", labels: ["a"] })
      .with("x".repeat(100_000))
      .add();
    ok(registry.text().length < 400);
  });

  test("a counter never decreases", () => {
    const counter = new MetricsRegistry().counter({ name: "c_total", help: "" }).with();
    counter.add(5);
    counter.add(-3);
    counter.add(NaN);
    equal(counter.value, 5);
  });

  test("with an invalid description are refused", () => {
    const registry = new MetricsRegistry();
    registry.gauge({ name: "taken", help: "" });
    const two = registry.gauge({ name: "two", help: "", labels: ["a", "b"] });
    throws(() => registry.gauge({ name: "taken", help: "" }), /two metrics/);
    throws(() => registry.gauge({ name: "not a name", help: "" }), /not a metric's name/);
    throws(() => registry.counter({ name: "calls", help: "" }), /ends in _total/);
    throws(() => registry.gauge({ name: "g", help: "", labels: ["le"] }), /not a label's name/);
    throws(() => registry.histogram({ name: "h", help: "", bounds: [2, 1] }), /bounds grow/);
    throws(() => two.with("one"), /has 2 labels/);
  });
});

describe("the edge's metrics", () => {
  test("are calls, bytes, latency, connections and refusals", () => {
    const registry = new MetricsRegistry();
    let open = 3;
    const edge = edgeMetrics(registry, {
      connections: () => ({ silent: open, stranger: 0, anonymous: 0, known: 0 }),
      certificateExpiresAtMs: () => 5_000,
    });
    const submit = edge.method("work.Submit");
    submit.received.add(200);
    submit.sent.add(100);
    submit.ended("OK", 0.000_2);
    submit.ended("OK", 0.3);
    submit.ended("UNAVAILABLE", 0.01);
    edge.connections("h2").add();
    edge.refused("token-expired");
    edge.refused("rapid-reset");
    const text = samples(registry.text());
    for (const line of [
      'millrace_edge_calls_total{method="work.Submit",code="OK"} 2',
      'millrace_edge_calls_total{method="work.Submit",code="UNAVAILABLE"} 1',
      'millrace_edge_received_bytes_total{method="work.Submit"} 200',
      'millrace_edge_sent_bytes_total{method="work.Submit"} 100',
      'millrace_edge_call_seconds_bucket{method="work.Submit",le="0.00025"} 1',
      'millrace_edge_call_seconds_count{method="work.Submit"} 3',
      'millrace_edge_connections_total{protocol="h2"} 1',
      "millrace_edge_connections_open 3",
      "millrace_edge_certificate_expires_seconds 5",
      'millrace_edge_refusals_total{reason="token-expired"} 1',
      'millrace_edge_refusals_total{reason="rapid-reset"} 1',
      'millrace_edge_refusals_total{reason="role-missing"} 0',
    ])
      ok(text.includes(line), line);
    open = 0;
    match(registry.text(), /^millrace_edge_connections_open 0$/m);
  });

  test("stay bounded when callers invent methods and codes", () => {
    const registry = new MetricsRegistry();
    const edge = edgeMetrics(registry, {
      connections: () => ({ silent: 0, stranger: 0, anonymous: 0, known: 0 }),
      certificateExpiresAtMs: () => 0,
    });
    for (let at = 0; at < 5_000; at += 1) {
      edge.method(`made-up-${at}`).ended(`code-${at}`, 1);
      edge.refused(`reason-${at}`);
    }
    const seriesMax = Object.values(edgeMetricTable).reduce((sum, row) => {
      const perSeries = "bounds" in row ? row.bounds.length + 3 : 1;
      return sum + perSeries * (("seriesMax" in row ? row.seriesMax : 0) + 1);
    }, 0);
    ok(samples(registry.text()).length <= seriesMax);
  });
});

describe("the process's metrics", () => {
  test("are what the process measures of itself", () => {
    const registry = new MetricsRegistry();
    using _stop = processMetrics(registry);
    const value = (name: string): number =>
      Number(
        samples(registry.text())
          .find((line) => line.startsWith(`${name} `))
          ?.split(" ")[1],
      );
    ok(value("process_cpu_seconds_total") > 0);
    ok(value("process_resident_memory_bytes") > 1024 ** 2);
    ok(value("millrace_heap_used_bytes") > 1024 ** 2);
    ok(value("process_start_time_seconds") > 1.7e9);
    ok(value("millrace_event_loop_busy_seconds_total") >= 0);
    ok(!registry.text().includes("NaN"));
  });

  test("show how late the event loop was", () => {
    const registry = new MetricsRegistry();
    const loopDelaySeconds = { p50: 0.001, p99: 0.02, max: 0.3 };
    using _stop = processMetrics(registry, () => ({
      cpuSeconds: 1,
      residentBytes: 2,
      heapUsedBytes: 3,
      heapTotalBytes: 4,
      externalBytes: 5,
      startedAtSeconds: 6,
      loopBusySeconds: 7,
      loopDelaySeconds,
    }));
    const shown = samples(registry.text()).filter((line) => line.startsWith("millrace_event_loop_delay"));
    deepEqual(shown, [
      'millrace_event_loop_delay_seconds{quantile="0.5"} 0.001',
      'millrace_event_loop_delay_seconds{quantile="0.99"} 0.02',
      'millrace_event_loop_delay_seconds{quantile="1"} 0.3',
    ]);
  });
});
