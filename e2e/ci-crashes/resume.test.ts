/**
 * A node is killed while it runs a job, with everything that it runs: the job goes on after its last finished step, and
 * an outside process counts what steps did.
 */
import { deepEqual, equal, ok } from "node:assert/strict";
import { mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
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

/** `/hold` is answered only when it is called for the second time. */
const answer = (path: string, count: number) => (path === "/hold" && count === 1 ? undefined : "ok\n");

const workflow = (url: string): string => `
on: workflow_dispatch
jobs:
  build:
    runs-on: ubuntu-latest
    outputs: { word: "\${{ steps.first.outputs.word }}" }
    steps:
      - id: first
        run: |
          curl -fsS ${url}/one
          bin="$RUNNER_TOOL_CACHE/bin"; mkdir -p "$bin"; echo "$bin" >> "$GITHUB_PATH"
          printf '#!/bin/sh\\necho the tool runs\\n' > "$bin/tool"; chmod +x "$bin/tool"
          echo "word=kept" >> "$GITHUB_OUTPUT"; echo "FROM_FIRST=yes" >> "$GITHUB_ENV"
          echo hello > made; echo "the first step"
      - run: curl -fsS ${url}/two; echo more >> made; echo "the second step"
      - run: curl -fsS ${url}/hold; tool; echo "third $FROM_FIRST $(cat made | tr '\\n' ' ')"
      - run: millrace effect run pay -- curl -fsS ${url}/four; echo "the fourth step of $MILLRACE_STEP"
      - uses: millrace/effect@v1
        with: { name: tell, run: 'curl -fsS ${url}/five; echo "told as $MILLRACE_EFFECT_KEY"' }
`;

const asking = (url: string): string => `
on: workflow_dispatch
jobs:
  pay:
    runs-on: ubuntu-latest
    steps:
      - run: millrace effect run pay -- curl -fsS ${url}/hold; echo "went on"
`;

test("a run stands still until a person has said whether an effect was done", { skip, timeout: 180_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "millrace-ci-decision-"));
  const outside = await counter(answer);
  using repository = new TestRepository({ ".github/workflows/w.yml": asking(outside.url) });
  const node = await NodeProcess.open(folder, { worker: { slots: 1 } });
  const ci = new CiNode(`http://${node.address}`, () => readOwnerToken(dataFolder(folder)) ?? "");
  try {
    await ci.register("mill/flour", repository.folder);
    const run = await ci.dispatch("mill/flour", "w");
    await until("the step pays", () => outside.counts.has("/hold"), { limitMs: 60_000, everyMs: 50 });
    equal((await ci.show(run)).status, "in_progress");
    await node.kill();
    await node.start();
    const status = async () => (await ci.show(run).catch(() => undefined))?.status;
    await until("it asks", async () => (await status()) === "needs_decision", { limitMs: 120_000, everyMs: 100 });
    const [key = ""] = (await ci.show(run)).decisions ?? [];
    ok(key.startsWith(`job/${run}/`) && key.endsWith("pay"), key);
    deepEqual(
      (await ci.list()).map((one) => [one.run, one.status]),
      [[run, "needs_decision"]],
    );
    const why = (await (await ci.fetch(`/v1/runs/${run}/why`)).json()) as { readonly lines: readonly string[] };
    ok(
      why.lines.some((line) => line.includes(`effect decide ${key}`)),
      why.lines.join("\n"),
    );
    const headers = { "content-type": "application/json" };
    const decided = await ci.fetch(`/v1/effects/${key}`, { method: "PUT", headers, body: '{"wasDone":true}' });
    equal(decided.status, 200);
    equal((await ci.ended(run, 60_000)).conclusion, "success");
    equal(outside.counts.get("/hold"), 1, "nothing was repeated");
  } finally {
    await node[Symbol.asyncDispose]();
    outside.close();
    clearAway(folder);
  }
});

test("steps that have ended are not run again when the runner is lost", { skip, timeout: 180_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "millrace-ci-resume-"));
  const outside = await counter(answer);
  using repository = new TestRepository({ ".github/workflows/w.yml": workflow(outside.url) });
  const node = await NodeProcess.open(folder, { worker: { slots: 1 } });
  const ci = new CiNode(`http://${node.address}`, () => readOwnerToken(dataFolder(folder)) ?? "");
  try {
    await ci.register("mill/flour", repository.folder);
    const run = await ci.dispatch("mill/flour", "w");
    await until("the third step runs", () => outside.counts.has("/hold"), { limitMs: 60_000, everyMs: 50 });
    await node.kill();
    await node.start();
    const shown = await ci.ended(run, 120_000);
    equal(shown.conclusion, "success");
    deepEqual(
      shown.jobs.map(({ id, attempts }) => `${id} ${attempts}`),
      ["build 2"],
    );
    deepEqual(
      [...outside.counts],
      [
        ["/one", 1],
        ["/two", 1],
        ["/hold", 2],
        ["/four", 1],
        ["/five", 1],
      ],
    );
    const texts = (await ci.log(run, "build")).split("\n").flatMap((line) => /\| (.+)$/.exec(line)?.[1] ?? []);
    const said = texts.filter((text) => /step$|^third|tool runs|^the fourth/.test(text));
    deepEqual(said, [
      "the first step",
      "the second step",
      "the tool runs",
      "third yes hello more ",
      "the fourth step of build/0/__run_3",
    ]);
    const again = await ci.rerun(run, {});
    equal((await ci.ended(again, 60_000)).conclusion, "success");
    deepEqual([outside.counts.get("/one"), outside.counts.get("/four")], [2, 1], "a re-run shares the run's effects");
    equal(outside.counts.get("/five"), 1, "those of an action as well");
    ok(shown.jobs[0]?.steps?.length === undefined || shown.jobs[0].steps.length === 5, "all steps are shown");
  } finally {
    await node[Symbol.asyncDispose]();
    outside.close();
    clearAway(folder);
  }
});

const policies = (url: string): string => `
on: workflow_dispatch
jobs:
  again:
    runs-on: ubuntu-latest
    steps:
      - run: curl -fsS ${url}/one
      - run: curl -fsS ${url}/hold
  never:
    runs-on: ubuntu-latest
    x-millrace: { on-runner-loss: fail }
    steps:
      - run: curl -fsS ${url}/once
      - run: sleep 600
      - { if: always(), run: curl -fsS ${url}/tidied }
`;

test(
  "CI-12: a job whose kept files are damaged starts again, and one that says fail fails, with no step more",
  { skip, timeout: 180_000 },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "millrace-ci-damaged-"));
    const outside = await counter(answer);
    using repository = new TestRepository({ ".github/workflows/w.yml": policies(outside.url) });
    const node = await NodeProcess.open(folder, { worker: { slots: 2 } });
    const ci = new CiNode(`http://${node.address}`, () => readOwnerToken(dataFolder(folder)) ?? "");
    try {
      await ci.register("mill/flour", repository.folder);
      const run = await ci.dispatch("mill/flour", "w");
      const reached = ["/hold", "/once"];
      await until("both jobs run", () => reached.every((path) => outside.counts.has(path)), { limitMs: 60_000 });
      await node.kill();
      loseKeptKey(folder);
      await node.start();
      const { jobs } = await ci.ended(run, 120_000);
      deepEqual(
        jobs.map(({ id, conclusion, attempts }) => `${id} ${conclusion} ${attempts}`),
        ["again success 2", "never failure 1"],
      );
      deepEqual(
        ["/one", "/once", "/tidied"].map((path) => outside.counts.get(path)),
        [2, 1, undefined],
      );
      ok((await ci.log(run, "again")).includes("is damaged: the job starts again"));
    } finally {
      await node[Symbol.asyncDispose]();
      outside.close();
      clearAway(folder);
    }
  },
);

/** Nothing that was sealed with it can be opened any more. */
function loseKeptKey(folder: string): void {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const [name = ""] = names.filter((one) => /(^|\/)shared\.db$/.test(one));
  using db = new DatabaseSync(join(folder, name));
  const { changes: lost } = db.prepare("delete from records where name = 'ci.kept'").run();
  equal(lost, 1);
}
