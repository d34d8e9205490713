// The HTTP API of a real node: jobs, watching, tenants, the OpenAPI document, and the console's files.
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import {
  cancelJob,
  countJobs,
  listJobs,
  rerunJob,
  resultsOfStage,
  showJob,
  signalJob,
  watchJob,
  watchJobs,
  whyJob,
} from "#api/jobs.ts";
import { showCluster } from "#api/cluster.ts";
import { showSession } from "#api/session.ts";
import { startNode } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { orderFromCommand, orderFromFile, planJob } from "#app/job-order.ts";
import { isFault } from "#base/fault.ts";
import { tokenSha256 } from "#edge/identity/bearer.ts";
import { callEndpoint, type Fetch } from "#http/client.ts";
import { clearAway } from "#testing/clear-away.ts";
import { writeFile } from "node:fs/promises";

const folder = await mkdtemp(join(tmpdir(), "millrace-api-"));
const [ops, ann, eve] = ["ops", "ann", "eve"].map((name) => `${name}-${"0123456789".repeat(4)}`);
const tokens = [
  { name: "ops", tenant: "*", roles: ["operator"], sha256: tokenSha256(ops ?? "") },
  { name: "ann", tenant: "default", roles: ["member"], sha256: tokenSha256(ann ?? "") },
  { name: "eve", tenant: "other", roles: ["member"], sha256: tokenSha256(eve ?? "") },
];
const config = Config.parse({
  cluster: { shards: 2 },
  journal: { kind: "memory" },
  edge: { listen: ["127.0.0.1:0"], identity: { tokens } },
});
const node = await startNode(config, dataFolder(folder), { log: () => {} });
after(async () => {
  await node.stop();
  clearAway(folder);
});

const base = `http://${node.edgeAddresses[0]}`;
const as =
  (token: string | undefined): Fetch =>
  (path, init) =>
    fetch(base + path, {
      ...init,
      headers: { ...(init.headers as object), ...(token && { authorization: `Bearer ${token}` }) },
    });
const [member, stranger, operator] = [as(ann), as(eve), as(ops)];
const submit = async (...command: readonly string[]): Promise<string> =>
  (await node.client.submit(orderFromCommand(command, { tenant: "default" }))).jobId;
const statusOf = async (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => 200,
    (error: unknown) => (isFault(error) ? error.facts["status"] : error),
  );

describe("the HTTP API", { timeout: 90_000 }, () => {
  test("shows a job to its tenant, live until it has ended", async () => {
    const job = await submit("echo", "hello");
    const seen = [];
    for await (const { data } of await callEndpoint(member, watchJob, { params: { job } })) seen.push(data);
    equal(seen.at(-1)?.phase, "SUCCEEDED");
    match(seen.at(-1)?.tasks[0]?.result ?? "", /hello/);
    const shown = await callEndpoint(member, showJob, { params: { job } });
    deepEqual([shown.job, shown.phase, shown.stages.length], [job, "SUCCEEDED", 1]);
    equal(Date.parse(shown.resultsUntil ?? "") - Date.parse(shown.endedAt ?? ""), 7 * 24 * 3_600_000);
    deepEqual(await callEndpoint(member, whyJob, { params: { job } }), { tasks: [], lines: [] });
  });

  test("lists jobs in pages, and sends the list again when it has changed", async () => {
    for (let n = 0; n < 3; n += 1) await submit("true");
    const stop = new AbortController();
    const live = await callEndpoint(member, watchJobs, { query: { limit: 100 }, signal: stop.signal });
    const first = await live.next();
    const job = await submit("true");
    ok(first.done !== true && !first.value.data.items.some((one) => one.job === job));
    for await (const { data } of live) if (data.items.some((one) => one.job === job)) break;
    stop.abort();
    const ids: string[] = [];
    for (let cursor: string | undefined, first = true; first || cursor !== undefined; first = false) {
      const page = await callEndpoint(member, listJobs, {
        query: { limit: 2, ...(cursor !== undefined && { cursor }) },
      });
      ids.push(...page.items.map((one) => one.job));
      cursor = page.next;
    }
    equal(new Set(ids).size, ids.length);
    ok(ids.includes(job));
  });

  test("lists and counts jobs by tag, phase and time, and numbers those of a series", async () => {
    const wish = (branch: string) => ({ tenant: "default", series: "ci", tags: { repository: "mill", branch } });
    const orders = ["main", "dev", "main"].map((branch) => orderFromCommand(["true"], wish(branch)));
    const jobs: string[] = [];
    for (const [i, order] of orders.entries()) {
      const { jobId, number } = await node.client.submit(order);
      equal(number, i + 1);
      jobs.push(jobId);
      for await (const { data } of await callEndpoint(member, watchJob, { params: { job: jobId } }))
        if (data.endedAt !== undefined) deepEqual([data.number, data.tags?.["repository"]], [i + 1, "mill"]);
    }
    const [first, dev, last] = jobs;
    const listed = async (fetching: Fetch, query: Parameters<typeof callEndpoint<typeof listJobs>>[2]["query"]) =>
      (await callEndpoint(fetching, listJobs, { query: query ?? {} })).items.map(({ job }) => job);
    deepEqual(await listed(member, { tag: ["branch=main", "repository=mill"] }), [last, first]);
    deepEqual(await listed(member, { tag: ["branch=main"], limit: 1 }), [last]);
    deepEqual(await listed(member, { tag: ["branch=dev"], phase: "SUCCEEDED", door: "shell" }), [dev]);
    deepEqual(await listed(member, { tag: ["branch=dev"], to: "2020-01-01T00:00:00Z" }), []);
    deepEqual(await listed(stranger, { tag: ["branch=main"] }), []);
    equal((await member("/v1/jobs?tag=main", {})).status, 400);
    // The end of a job is in history a moment after it.
    for (let counted = 0; counted < 2;) {
      const query = { tag: ["branch=main"] };
      counted = (await callEndpoint(member, countJobs, { query })).phases.SUCCEEDED ?? 0;
      deepEqual((await callEndpoint(stranger, countJobs, { query })).jobs, 0);
    }
  });

  test("repeats a job from history, with its tags and the results that may be reused", async () => {
    const wish = { tenant: "default", tags: { repository: "mill" } };
    const { jobId: job } = await node.client.submit(orderFromCommand(["true"], wish));
    for await (const _ of await callEndpoint(operator, watchJob, { params: { job } }));
    const again = { params: { job }, body: { reuse: true }, idempotencyKey: "again" };
    const until = async (): Promise<string> => {
      for (;;) {
        const status = await statusOf(callEndpoint(operator, rerunJob, again));
        if (status === 200) return (await callEndpoint(operator, rerunJob, again)).job;
        equal(status, 404, "until history has it");
      }
    };
    const repeated = await until();
    for await (const { data } of await callEndpoint(operator, watchJob, { params: { job: repeated } }))
      if (data.endedAt !== undefined) {
        deepEqual([data.phase, data.tags], ["SUCCEEDED", { repository: "mill", "rerun-of": job }]);
      }
    equal(await statusOf(callEndpoint(stranger, rerunJob, { params: { job }, body: {} })), 404);
  });

  test("lists the results of a stage, of an array as of single tasks, generation by generation", async () => {
    const stages = [
      { name: "many", array: 1_100, sleep: "0s", after: "end" },
      {
        name: "few",
        needs: ["many"],
        count: 3,
        run: "echo made $MILLRACE_INDEX; test $MILLRACE_INDEX != 2",
        attempts: 1,
      },
    ];
    const { jobId: job } = await node.client.submit(planJob({ document: { stages } }, { tenant: "default" }));
    const results = async (stage: string, query: { generation?: number; from?: number; limit?: number } = {}) =>
      await Array.fromAsync(await callEndpoint(member, resultsOfStage, { params: { job, stage }, query }));
    for await (const { data } of await callEndpoint(member, watchJob, { params: { job } })) equal(data.job, job);
    const [head, ...all] = await results("many");
    ok(head?.kind === "stage" && head.complete && head.manifest !== undefined);
    deepEqual([head.tasks, head.generation, all.length], [1_100, 1, 1_100]);
    deepEqual(
      (await results("many", { from: 1_022, limit: 4 })).slice(1).map((line) => line.kind === "result" && line.key),
      ["1023", "1024", "1025", "1026"],
    );
    const few = await results("few", { generation: 1 });
    deepEqual(
      few.slice(1).map((line) => line.kind === "result" && [line.key, line.phase, line.failure?.reason]),
      [
        ["1", "SUCCEEDED", undefined],
        ["2", "FAILED", "user-failure"],
        ["3", "SUCCEEDED", undefined],
      ],
    );
    const [, one] = few;
    match((one?.kind === "result" && one.result) || "", /made 1/);
    equal(await statusOf(results("few", { generation: 2 })), 404);
    equal(await statusOf(results("none")), 404);
    const stolen = callEndpoint(stranger, resultsOfStage, { params: { job, stage: "few" }, query: {} });
    equal(await statusOf(stolen), 404);
  });

  test("signals and cancels", async () => {
    const file = join(folder, "gate.yaml");
    await writeFile(
      file,
      "stages:\n  - { name: ship, gate: {}, run: 'true' }\n  - { name: wait, needs: [ship], sleep: 60s }\n",
    );
    const { jobId: job } = await node.client.submit(await orderFromFile(file, { tenant: "default" }));
    const approve = { params: { job }, body: { stage: "ship", name: "approve", id: "once" } };
    deepEqual(await callEndpoint(member, signalJob, approve), { job, recorded: true });
    equal(
      await statusOf(callEndpoint(member, signalJob, { ...approve, body: { stage: "none", name: "approve" } })),
      404,
    );
    for await (const { data } of await callEndpoint(member, watchJob, { params: { job } }))
      if (data.stages[1]?.phase === "RUNNING") break;
    equal((await callEndpoint(member, whyJob, { params: { job } })).tasks[0]?.stage, "wait");
    await callEndpoint(member, cancelJob, { params: { job }, body: { reason: "enough" } });
    let last = "";
    for await (const { data } of await callEndpoint(member, watchJob, { params: { job } })) last = data.phase;
    equal(last, "CANCELLED");
  });

  test("answers for another tenant's job as for a missing one", async () => {
    const job = await submit("sleep", "30");
    const said = async (fetching: Fetch, id: string): Promise<string> =>
      JSON.stringify(await (await fetching(`/v1/jobs/${id}`, {})).json()).replaceAll(id, "ID");
    equal(await said(stranger, job), await said(stranger, "j0-zzz"));
    for (const path of ["", "/watch", "/why"]) equal((await stranger(`/v1/jobs/${job}${path}`, {})).status, 404, path);
    for (const call of [
      callEndpoint(stranger, cancelJob, { params: { job }, body: {} }),
      callEndpoint(stranger, signalJob, { params: { job }, body: { stage: "job", name: "approve" } }),
    ])
      equal(await statusOf(call), 404);
    equal(await statusOf(callEndpoint(stranger, listJobs, { tenant: "default" })), 403);
    deepEqual((await callEndpoint(stranger, listJobs, {})).items, []);
    equal((await callEndpoint(operator, showJob, { params: { job }, tenant: "default" })).job, job);
    await callEndpoint(member, cancelJob, { params: { job }, body: {} });
  });

  test("shows the cluster to operators only", async () => {
    const { nodes, shards } = await callEndpoint(operator, showCluster, {});
    deepEqual([nodes.length, shards.length, shards[0]?.owner], [1, 2, nodes[0]?.node]);
    equal(await statusOf(callEndpoint(member, showCluster, {})), 403);
    equal(await statusOf(callEndpoint(as(undefined), showCluster, {})), 401);
  });

  test("says who the caller is", async () => {
    const { name, tenant, roles, proof } = await callEndpoint(member, showSession, {});
    deepEqual([name, tenant, roles, proof], ["ann", "default", ["member"], "token"]);
    equal(await statusOf(callEndpoint(as(undefined), showSession, {})), 401);
  });

  test("describes itself", async () => {
    const { paths } = (await (await member("/v1/openapi.json", {})).json()) as { paths: Record<string, object> };
    ok("/v1/jobs/{job}/watch" in paths && "/v1/cluster" in paths);
  });

  test("counts its calls by endpoint, never by path", async () => {
    const text = await (await operator("/metrics", {})).text();
    match(text, /millrace_http_requests_total\{endpoint="GET \/v1\/jobs\/\{job\}",status="404"\}/);
  });
});

describe("the console's files", () => {
  test("are served without credentials, under a strict policy", async () => {
    const page = await fetch(`${base}/`);
    match(page.headers.get("content-security-policy") ?? "", /default-src 'none'.*trusted-types 'none'/);
    const text = await page.text();
    for (const asset of text.match(/\/console\/assets\/[^"]+/g) ?? []) {
      const response = await fetch(base + asset);
      equal(response.status, 200);
      match(response.headers.get("cache-control") ?? "", /immutable/);
      await response.body?.cancel();
    }
    equal((await fetch(`${base}/console/jobs/j0-1`)).status, page.status);
    equal((await fetch(`${base}/console/assets/js-0000000000000000.js`)).status, 404);
  });
});
