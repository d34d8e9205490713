/** Why runs, jobs and steps are where they are, and what jobs say besides their logs, asked of a node. */
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { WebSocket } from "ws";
import type { z } from "zod";
import { startNode, type Running } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { RunSocketSends } from "#doors/ci/endpoints.ts";
import { showDetails, whyRun, whyRunJob, whyStep } from "#doors/ci/why/endpoints.ts";
import { callEndpoint } from "#http/client.ts";
import { clearAway } from "#testing/clear-away.ts";
import { cliLine } from "#testing/cli-line.ts";
import { until } from "#testing/until.ts";
import { CiNode } from "./ci-node.ts";
import { TestRepository } from "./repository.ts";

const wait = { limitMs: 60_000, everyMs: 50 };
const skipped = `
on: workflow_dispatch
jobs:
  lint: { runs-on: ubuntu-latest, if: "github.ref == 'refs/heads/never'", steps: [{ run: 'true' }] }
  build: { needs: lint, runs-on: ubuntu-latest, steps: [{ run: 'true' }] }
  deploy: { needs: build, runs-on: ubuntu-latest, steps: [{ run: 'true' }] }
  parts:
    runs-on: ubuntu-latest
    env: { PLACE: "\${{ secrets.PLACE }}" }
    steps:
      - run: 'echo "### grinding" >> "$GITHUB_STEP_SUMMARY"'
      - if: env.PLACE == 'elsewhere' && github.actor != ''
        run: exit 1
      - run: 'echo "::error file=mill.c,line=3,title=Stone::it is blunt"; exit 3'
      - run: echo never
`;
const labels = "on: workflow_dispatch\njobs: { a: { runs-on: ubunut-latest, steps: [{ run: 'true' }] } }\n";
const queue = `
on: workflow_dispatch
jobs:
  a: { runs-on: ubuntu-latest, strategy: { matrix: { n: [1, 2, 3] } }, steps: [{ run: exec sleep 600 }] }
`;

type CollectedSpan = {
  readonly traceId: string;
  readonly name: string;
  readonly attributes: Readonly<Record<string, unknown>>;
};

/** Takes OTLP over HTTP. */
class SpanCollector {
  readonly #spans: CollectedSpan[] = [];
  readonly #server = createServer((request, response) => void this.#take(request).then(() => response.end()));

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async until(
    isWanted: (span: CollectedSpan) => boolean,
    isEnough: (spans: readonly CollectedSpan[]) => boolean = (spans) => spans.length > 0,
  ): Promise<readonly CollectedSpan[]> {
    const found = (): readonly CollectedSpan[] => this.#spans.filter(isWanted);
    await until("the spans have come", () => isEnough(found()), wait);
    return found();
  }

  async #take(request: AsyncIterable<Buffer>): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    type Sent = { key: string; value: Record<string, unknown> };
    const { resourceSpans } = JSON.parse(Buffer.concat(parts).toString()) as {
      resourceSpans: { scopeSpans: { spans: { traceId: string; name: string; attributes: Sent[] }[] }[] }[];
    };
    for (const { traceId, name, attributes } of resourceSpans.flatMap((one) =>
      one.scopeSpans.flatMap(({ spans }) => spans),
    )) {
      const pairs = attributes.map(({ key, value }) => [key, Object.values(value)[0]] as const);
      this.#spans.push({ traceId, name, attributes: Object.fromEntries(pairs) });
    }
  }
}

describe("why runs, jobs and steps are where they are", { timeout: 60_000 }, () => {
  let folder: string;
  let node: Running;
  let ci: CiNode;
  let repository: TestRepository;
  const collector = new SpanCollector();

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "millrace-ci-why-"));
    repository = new TestRepository({
      ".github/workflows/skipped.yml": skipped,
      ".github/workflows/labels.yml": labels,
      ".github/workflows/queue.yml": queue,
    });
    const config = Config.parse({
      edge: { listen: ["127.0.0.1:0"] },
      cluster: { shards: 1 },
      node: { stopWithin: "100ms" },
      worker: { slots: 2 },
      traces: { endpoint: await collector.start(), share: 1 },
    });
    node = await startNode(config, dataFolder(folder), { log: () => {} });
    ci = new CiNode(`http://127.0.0.1:${node.edgePorts[0]}`, () => node.owner);
    await ci.register("mill/flour", repository.folder);
  });
  after(async () => {
    await node.stop();
    repository[Symbol.dispose]();
    clearAway(folder);
    collector.stop();
  });

  const whyOfRun = async (run: string) => await callEndpoint(ci.fetch, whyRun, { params: { run } });
  const cli = async (...words: readonly string[]) => {
    const { code, out } = await cliLine(dataFolder(folder).path, ...words);
    return { code, out: out.join("\n") };
  };

  test("skipped jobs and steps are told with what each part of their conditions came to", async () => {
    const run = await ci.dispatch("mill/flour", "skipped");
    equal((await ci.ended(run)).conclusion, "failure");
    const lint = await callEndpoint(ci.fetch, whyRunJob, { params: { run, job: "lint" } });
    deepEqual(lint.lines, [
      "it was skipped: if: github.ref == 'refs/heads/never' is false",
      "  success() && (github.ref == 'refs/heads/never') → false",
      "    success() → true",
      "    github.ref == 'refs/heads/never' → false",
      '      github.ref → "refs/heads/main"',
    ]);
    const deploy = await callEndpoint(ci.fetch, whyRunJob, { params: { run, job: "deploy" } });
    equal(deploy.condition?.note, "build was skipped, lint was skipped");
    const step = await callEndpoint(ci.fetch, whyStep, { params: { run, job: "parts", step: "1" } });
    deepEqual(
      [step.conclusion, step.condition?.parts?.map(({ expression, value }) => `${expression} ${value}`)],
      ["skipped", ["success() true", "env.PLACE == 'elsewhere' && github.actor != '' false"]],
    );
    const failed = await callEndpoint(ci.fetch, whyStep, { params: { run, job: "parts", step: "2" } });
    match(failed.lines.join("\n"), /failed\n {2}mill\.c:3: it is blunt\n {2}Process completed with exit code 3\./);
    await rejects(callEndpoint(ci.fetch, whyStep, { params: { run, job: "parts", step: "99" } }), /no such step/);
    await rejects(callEndpoint(ci.fetch, whyRunJob, { params: { run, job: "nobody" } }), /find the job/);
    const at = { step: 2 };
    const details = await callEndpoint(ci.fetch, showDetails, { params: { run, job: "parts" } });
    deepEqual(details.summaries, [{ step: 0, text: "### grinding\n" }]);
    const { annotations } = details;
    deepEqual(annotations[0], {
      ...at,
      level: "error",
      message: "it is blunt",
      title: "Stone",
      file: "mill.c",
      line: 3,
    });
    const told = await cli("why", run);
    equal(told.code, 0);
    match(told.out, /^j\d-\d+ failure: failed: parts\nlint: it was skipped/);
    match(told.out, /parts: it failed\n {2}step 2, .* failed\n/);
    match((await cli("why", run, "parts", "1")).out, /step 1, .* was skipped\n {2}success\(\) &&/);
    match((await cli("ci", "logs", run, "parts", "--search", "BLUNT")).out, /^\d+: it is blunt$/m);
    const headers = { authorization: `Bearer ${node.owner}` };
    const socket = new WebSocket(`${ci.base.replace("http", "ws")}/v1/runs/${run}/socket`, { headers });
    const heard: z.output<typeof RunSocketSends>[] = [];
    socket.on("message", (data: Buffer) => heard.push(RunSocketSends.parse(JSON.parse(data.toString()))));
    await once(socket, "close");
    deepEqual(
      heard.map((one) => (one.kind === "run" ? `run ${one.run.conclusion}` : one.kind)),
      ["run failure", "end"],
    );
    equal((JSON.parse((await cli("why", run, "lint", "--json")).out) as { id: string }).id, "lint");
  });

  test("a run is one trace, with spans for its start, its jobs and itself", async () => {
    const run = await ci.dispatch("mill/flour", "skipped");
    await ci.ended(run);
    const [whole] = await collector.until(
      (span) => span.name === "shard job" && span.attributes["millrace.job"] === run,
    );
    ok(whole);
    const spans = await collector.until(
      ({ traceId, name, attributes }) =>
        traceId === whole.traceId && (name !== "shard queue" || attributes["millrace.task"] === "0 parts"),
      (found) => found.some(({ name }) => name === "shard queue") && found.some(({ name }) => name.startsWith("edge ")),
    );
    ok(spans.some(({ name }) => name === "edge ci start a run"));
    ok(spans.filter(({ name }) => name === "shard job").length === 1);
  });

  test("a label that no runner has is said at once, with the nearest", async () => {
    const run = await ci.dispatch("mill/flour", "labels");
    await until("its job is planned", async () => (await ci.show(run)).jobs[0]?.job !== undefined, wait);
    const why = await whyOfRun(run);
    deepEqual(why.jobs[0]?.lines, ['no runner has the label "ubunut-latest" (is "ubuntu-latest" meant?)']);
    deepEqual(why.jobs[0]?.waits?.["unknownLabels"], [{ label: "ubunut-latest", nearest: "ubuntu-latest" }]);
    const lines: string[] = [];
    const watched = cliLine(dataFolder(folder).path, "ci", "watch", run).then(({ out }) => lines.push(...out));
    await ci.cancel(run);
    await ci.ended(run);
    await watched;
    match(lines.join("\n"), /cancelled/);
  });

  test("what is queued is told with its place and the runners that could run it", async () => {
    const run = await ci.dispatch("mill/flour", "queue");
    await until(
      "two run",
      async () => (await ci.show(run)).jobs.filter(({ status }) => status === "in_progress").length === 2,
      wait,
    );
    const why = await whyOfRun(run);
    const [, , last] = why.jobs;
    equal(last?.waits?.kind, "queued");
    deepEqual([last?.waits?.["position"], last?.waits?.["runners"]?.length], [0, 1]);
    match(last?.lines[0] ?? "", /^it waits for the one runner that can run it \(.+\): it is the next of its tenant$/);
    ok(why.lines.some((line) => line.startsWith("a (1): it runs on ")));
    const metrics = await (await ci.fetch("/metrics")).text();
    for (const line of [
      'cicd_jobs_running_gauge{tenant="default",runs_on="ubuntu-latest"} 2',
      'cicd_queue_depth{runs_on="ubuntu-latest"} 1',
      "cicd_step_failures_total 2",
    ])
      ok(metrics.split("\n").includes(line), `${line} is not in\n${metrics.replaceAll(/^(?!cicd).*\n/gm, "")}`);
    match(metrics, /^cicd_job_duration_seconds_count\{runs_on="ubuntu-latest",conclusion="failure"\} 2$/m);
    await ci.cancel(run);
    await ci.ended(run);
  });
});
