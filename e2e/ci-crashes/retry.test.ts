/** Jobs that are tried again for reasons of their own: an outside process counts how often they began. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { dataFolder } from "#app/node/data-folder.ts";
import { readOwnerToken } from "#app/node/owner-token.ts";
import { NodeProcess } from "#e2e/store/node-process.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";
import { CiNode } from "#e2e/ci/ci-node.ts";
import { TestRepository } from "#e2e/ci/repository.ts";
import { counter } from "./counter.ts";

const skip = process.platform === "linux" ? false : "needs linux: jobs run in its process groups";

/** Answers each call with how often it was called with that path; `/held...` is never answered. */
const answer = (path: string, count: number) => (path.startsWith("/held") ? undefined : String(count));

const workflow = (url: string): string => `
on: workflow_dispatch
jobs:
  flaky:
    runs-on: ubuntu-latest
    x-millrace: { retry: { max: 3, on: failure, delay: 1ms } }
    steps:
      - run: curl -fsS ${url}/first; test ! -e made; echo x > made
      - run: test "$(curl -fsS ${url}/flaky)" = 3
  broken:
    runs-on: ubuntu-latest
    strategy: { matrix: { x: [1, 2] }, max-parallel: 1 }
    x-millrace: { retry: { max: 1, on: failure, delay: 1ms } }
    steps: [{ run: 'curl -fsS ${url}/broken; exit 1' }]
  slow:
    runs-on: ubuntu-latest
    timeout-minutes: 0.1
    x-millrace: { retry: { max: 5, on: timed-out, delay: 1ms } }
    steps: [{ run: 'test "$(curl -fsS ${url}/slow)" -ge 2 || curl ${url}/held-slow' }]
`;

const losing = (url: string): string => `
on: workflow_dispatch
jobs:
  once: { runs-on: ubuntu-latest, steps: [{ run: 'curl -fsS ${url}/held' }] }
`;

type World = {
  readonly ci: CiNode;
  readonly node: NodeProcess;
  readonly counts: ReadonlyMap<string, number>;
  readonly why: (run: string, job: string) => Promise<string>;
};

async function withNode(text: (url: string) => string, settings: object, work: (world: World) => Promise<void>) {
  const folder = mkdtempSync(join(tmpdir(), "millrace-ci-retry-"));
  const outside = await counter(answer);
  using repository = new TestRepository({ ".github/workflows/w.yml": text(outside.url) });
  const node = await NodeProcess.open(folder, { worker: { slots: 3 }, ...settings });
  const ci = new CiNode(`http://${node.address}`, () => readOwnerToken(dataFolder(folder)) ?? "");
  const why = async (run: string, job: string): Promise<string> =>
    (
      (await (await ci.fetch(`/v1/runs/${run}/jobs/${job}/why`)).json()) as { readonly lines: readonly string[] }
    ).lines.join("\n");
  try {
    await ci.register("mill/flour", repository.folder);
    await work({ ci, node, counts: outside.counts, why });
  } finally {
    await node[Symbol.asyncDispose]();
    outside.close();
    clearAway(folder);
  }
}

test("a job is tried again from its start for the reasons that it names", { skip, timeout: 240_000 }, async () => {
  await withNode(workflow, {}, async ({ ci, counts, why }) => {
    const run = await ci.dispatch("mill/flour", "w");
    const shown = await ci.ended(run, 180_000);
    const jobs = shown.jobs.map(({ id, conclusion, attempts }) => `${id} ${conclusion} ${attempts}`);
    deepEqual(jobs.slice(0, 2), ["flaky success 3", "broken failure 2"]);
    const slow = shown.jobs.find(({ id }) => id === "slow");
    equal(slow?.conclusion, "success");
    ok((slow?.attempts ?? 0) >= 2, "the first attempt took too long");
    equal(counts.get("/first"), 3);
    equal(counts.get("/flaky"), 3);
    equal(counts.get("/broken"), 2, "the failure that is final stops the other cell, those before do not");
    match(await why(run, "flaky"), /attempt 3; the one before: the job failed: retry 2 of 3 follows/);
  });
});

test("a cluster may say that jobs end with their runner", { skip, timeout: 240_000 }, async () => {
  await withNode(losing, { ci: { onRunnerLoss: "fail" } }, async ({ ci, node, counts }) => {
    const run = await ci.dispatch("mill/flour", "w");
    await until("the job runs", () => counts.has("/held"), { limitMs: 60_000, everyMs: 50 });
    await node.kill();
    await node.start();
    const shown = await ci.ended(run, 120_000);
    deepEqual(
      shown.jobs.map(({ conclusion, attempts }) => `${conclusion} ${attempts}`),
      ["failure 1"],
    );
    equal(counts.get("/held"), 1);
  });
});
