import { deepEqual, equal, match, ok } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import fc from "fast-check";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { until } from "#testing/until.ts";
import { Bench, executing, Lab, play } from "#e2e/node/build/execution-lab.ts";
import { formatTraceparent, newSpanId, newTraceId, parseTraceparent } from "#app/record/traces-context.ts";
import { TraceExporter } from "#app/record/traces-exporter.ts";
import type { Span } from "#app/record/traces-otlp.ts";
import { Execution } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";

describe("a trace's context", () => {
  test("is parsed as W3C Trace Context says, and nothing else is", () => {
    const [traceId, spanId] = ["0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"];
    deepEqual(parseTraceparent(`00-${traceId}-${spanId}-01`), { traceId, spanId, sampled: true });
    deepEqual(parseTraceparent(`00-${traceId}-${spanId}-02`), { traceId, spanId, sampled: false });
    deepEqual(parseTraceparent(`cc-${traceId}-${spanId}-01-what-is-to-come`)?.sampled, true);
    for (const wrong of [
      undefined,
      "",
      `00-${traceId}-${spanId}`,
      `00-${traceId}-${spanId}-01-more`,
      `ff-${traceId}-${spanId}-01`,
      `00-${"0".repeat(32)}-${spanId}-01`,
      `00-${traceId}-${"0".repeat(16)}-01`,
      `00-${traceId.toUpperCase()}-${spanId}-01`,
    ])
      equal(parseTraceparent(wrong), undefined, String(wrong));
  });

  test("is written so that it can be parsed again, whatever came", () => {
    fc.assert(fc.property(fc.string(), (text) => parseTraceparent(text) === undefined || text.length >= 55));
    const context = { traceId: newTraceId(), spanId: newSpanId(), sampled: true };
    deepEqual(parseTraceparent(formatTraceparent(context)), context);
  });
});

describe("the exporter", () => {
  const span = (name: string): Span => ({
    traceId: "1".repeat(32),
    spanId: "2".repeat(16),
    parentId: undefined,
    name,
    kind: "internal",
    startMs: 1_700_000_000_000.5,
    endMs: 1_700_000_000_001,
    attributes: { count: 3, share: 0.5, word: "flour", left: undefined, yes: true },
  });

  function scene(answers: readonly number[], queueMax = 100) {
    const clock = new ManualClock();
    const sent: { resourceSpans: { scopeSpans: { spans: { name: string }[] }[] }[] }[] = [];
    const log: string[] = [];
    const left = [...answers];
    const exporter = new TraceExporter({
      clock,
      url: "http://collector/v1/traces",
      headers: {},
      resource: { "service.name": "mill" },
      version: "1",
      queueMax,
      send: async (_url, init) => {
        sent.push(JSON.parse(init?.body as string) as (typeof sent)[number]);
        return new Response(null, { status: left.shift() ?? 200 });
      },
      log: (line) => log.push(line),
    });
    return { clock, sent, log, exporter };
  }

  test("sends several spans in one request, in the format of OTLP", async () => {
    const { clock, sent, exporter } = scene([]);
    exporter.add(span("grind"));
    exporter.add(span("bake"));
    await clock.advance(2_000);
    equal(sent.length, 1);
    deepEqual(sent[0]?.resourceSpans[0]?.scopeSpans[0]?.spans[0], {
      traceId: "1".repeat(32),
      spanId: "2".repeat(16),
      name: "grind",
      kind: 1,
      startTimeUnixNano: "1700000000000500000",
      endTimeUnixNano: "1700000000001000000",
      attributes: [
        { key: "count", value: { intValue: "3" } },
        { key: "share", value: { doubleValue: 0.5 } },
        { key: "word", value: { stringValue: "flour" } },
        { key: "yes", value: { boolValue: true } },
      ],
    });
    deepEqual(exporter.figures, { sent: 2, dropped: 0, waiting: 0 });
  });

  test("retries when the collector is busy, and drops what it refuses", async () => {
    const { clock, sent, log, exporter } = scene([503, 200, 400]);
    exporter.add(span("late"));
    await clock.advance(10_000);
    deepEqual([sent.length, exporter.figures.sent], [2, 1]);
    exporter.add(span("wrong"));
    await clock.advance(10_000);
    deepEqual(exporter.figures, { sent: 1, dropped: 1, waiting: 0 });
    match(log.join(), /1 spans were dropped/);
  });

  test("keeps no more than its queue holds", async () => {
    const { exporter } = scene([], 100);
    for (let i = 0; i < 150; i += 1) exporter.add(span(String(i)));
    deepEqual(exporter.figures, { sent: 0, dropped: 50, waiting: 100 });
    await exporter.close();
    equal(exporter.figures.sent, 100);
  });
});

type SeenSpan = {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
};

/** A collector that keeps what it receives. */
class Collector {
  readonly spans: SeenSpan[] = [];
  readonly resources: string[] = [];
  readonly #server: Server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      equal(request.url, "/v1/traces");
      const body = JSON.parse(Buffer.concat(parts).toString()) as {
        resourceSpans: { resource: object; scopeSpans: { spans: SeenSpan[] }[] }[];
      };
      for (const { resource, scopeSpans } of body.resourceSpans) {
        this.resources.push(JSON.stringify(resource));
        for (const { spans } of scopeSpans) this.spans.push(...spans);
      }
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
  });

  async start(): Promise<string> {
    await new Promise<void>((done) => this.#server.listen(0, "127.0.0.1", done));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    await new Promise((done) => this.#server.close(done));
  }
}

const isLinux = process.platform === "linux";

describe("an action's trace", { skip: !isLinux && "needs linux: the sandbox", timeout: 120_000 }, () => {
  const collector = new Collector();
  let lab: Lab;
  before(async () => {
    const endpoint = await collector.start();
    lab = await Lab.open({ traces: { endpoint, share: 0 } });
  });
  after(async () => {
    await lab[Symbol.asyncDispose]();
    await collector.stop();
  });
  const run = async (traceparent: string | undefined) => {
    const bench = new Bench(lab.client());
    const action = await bench.sh(`cat in > out # ${randomUUID()}`, { outputPaths: ["out"] }, { in: "flour" });
    const metadata = traceparent === undefined ? [] : ([["traceparent", traceparent]] as const);
    const { response } = await play(
      bench.grpc.serverStream(Execution.methods.execute, executing(action), { metadata }),
    );
    equal(response.result?.exitCode, 0);
  };

  test("goes through edge, shard, worker and store, as a part of the caller's", async () => {
    const caller = { traceId: newTraceId(), spanId: newSpanId(), sampled: true };
    await run(formatTraceparent(caller));
    const mine = () => collector.spans.filter(({ traceId }) => traceId === caller.traceId);
    const named = (name: string) => mine().filter((span) => span.name === name);
    await until("all of it has come", () => named("shard job").length > 0 && named("worker attempt").length > 0, {
      limitMs: 60_000,
      everyMs: 50,
    });
    const [edge] = named("edge Execute");
    equal(edge?.parentSpanId, caller.spanId);
    for (const name of ["shard queue", "shard claim", "shard publish", "shard job", "worker attempt"]) {
      equal(named(name).length, 1, name);
      equal(named(name)[0]?.parentSpanId, edge?.spanId, name);
    }
    const [worker] = named("worker attempt");
    for (const name of ["worker fetch inputs", "worker run command", "worker upload outputs"])
      equal(named(name)[0]?.parentSpanId, worker?.spanId, name);
    const store = mine().filter(({ name }) => name.startsWith("store "));
    ok(
      store.some(({ name }) => name === "store write"),
      "outputs went into the store",
    );
    for (const span of store) equal(span.parentSpanId, worker?.spanId);
    equal(new Set(mine().map(({ spanId }) => spanId)).size, mine().length);
    match(collector.resources[0] ?? "", /service\.name.*millrace.*service\.instance\.id/);
  });

  test("is not recorded when the caller's is not, nor when sampling leaves it out", async () => {
    const before = collector.spans.length;
    await run(formatTraceparent({ traceId: newTraceId(), spanId: newSpanId(), sampled: false }));
    await run(undefined);
    const caller = { traceId: newTraceId(), spanId: newSpanId(), sampled: true };
    await run(formatTraceparent(caller));
    const ours = () => collector.spans.slice(before);
    await until("a later one has come", () => ours().some(({ name }) => name === "shard job"), {
      limitMs: 60_000,
      everyMs: 50,
    });
    ok(ours().every(({ traceId }) => traceId === caller.traceId));
  });
});
