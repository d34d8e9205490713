/** Runs on the real kernel, with the planners of the door and jobs that are only pretended. */
import { deepEqual, equal, throws } from "node:assert/strict";
import { test } from "node:test";
import { Random } from "#base/random.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import { testCluster } from "#shard/testing/client.ts";
import type { Runners } from "#worker/runner.ts";
import { createWorker } from "#worker/worker.ts";
import { cellOf, kinds, planLabel, planRun, planStage, taskLabel } from "./plan.ts";
import type { CellResult } from "./result.ts";
import { ciPlanners, readCellTask } from "./runs/planners.ts";
import { readRun, type RunRecord, type StoredRun } from "./runs/record.ts";
import { type RunView, viewRun } from "./view.ts";

const wishes = { tenant: "default", shardKey: "repository" };

const stored = (run: RunRecord): StoredRun => ({
  about: { title: "w", workflow: "w", path: "w.yml", repository: "", event: "push", ref: "", sha: "", actor: "" },
  files: { value: [run.file] },
  rest: { value: { github: run.github, vars: run.vars, inputs: run.inputs } },
});

const keptRun = (text: string) => ({ stored: stored(record(text)), digest: `${"0".repeat(64)}/1` });
const plan = (text: string) => planRun(record(text), keptRun(text), wishes);

const record = (text: string): RunRecord => ({
  file: { path: "w.yml", text },
  github: { ref: "refs/heads/main" },
  vars: {},
  inputs: {},
});

const jobs = (lines: Readonly<Record<string, string>>): string =>
  `on: push\njobs:\n${Object.entries(lines)
    .map(([id, line]) => `  ${id}:\n    runs-on: x\n    steps: [{ run: echo }]\n    ${line}`)
    .join("\n")}\n`;

/** What a cell comes to, by its name; outputs are made of `name=value` words. */
type Ends = Readonly<Record<string, string>>;

const pretended = (ends: Ends, ran: string[]): Runners => ({
  [kinds.job]: async (context) => {
    const task = await readCellTask(context.task.spec, context.blobs);
    const { cell, fails } = cellOf(task, await readRun(context.blobs, task.run));
    ran.push(cell.name);
    const [result = "success", ...words] = (ends[cell.name] ?? "success").split(" ");
    const outputs = Object.fromEntries(words.map((word) => word.split("=")));
    if (result === "failure" && fails) return { kind: "failed", reason: "user-failure", message: "it failed" };
    const payload = { result, outputs, isFailureAllowed: cell.isFailureAllowed } as CellResult;
    return { kind: "done", payload: JSON.stringify(payload) };
  },
});

async function play(
  text: string,
  ends: Ends = {},
): Promise<{ readonly run: RunView; readonly ran: readonly string[] }> {
  const clock = new ManualClock(0);
  const { client } = await testCluster(clock);
  const ran: string[] = [];
  const worker = createWorker({
    client,
    blobs: createMemoryBlobs({ clock, sizeBytesMax: 1_000_000 }),
    clock,
    random: new Random(1),
    executor: "worker",
    offers: [taskLabel, planLabel, "runner=x"],
    shards: 1,
    sources: () => new Map(),
    runners: pretended(ends, ran),
    planners: ciPlanners,
    options: { slots: 1 },
  });
  const { jobId } = await client.submit(plan(text));
  const stop = new AbortController();
  const running = worker.run(stop.signal);
  const hasEnded = async (): Promise<boolean> => viewRun((await client.job(jobId)).view).status === "completed";
  for (let turn = 0; turn < 1_000 && !(await hasEnded()); turn += 1) await clock.advance(50);
  stop.abort(new Error("done"));
  await running;
  return { run: viewRun((await client.job(jobId)).view), ran };
}

const told = ({ jobs: all }: RunView): readonly string[] => all.map(({ id, conclusion }) => `${id} ${conclusion}`);

test("a run is a job; a stage is planned from the results and outputs of those before it", async () => {
  const text = jobs({
    a: "if: github.ref == 'refs/heads/main'",
    b: "needs: a\n    strategy: { matrix: '${{ fromJSON(needs.a.outputs.m) }}' }",
    c: "needs: b\n    if: needs.b.result == 'success' && needs.a == null",
  });
  const { run, ran } = await play(text, { a: 'success m={"x":[1,2]}' });
  deepEqual(ran, ["a", "b (1)", "b (2)", "c"]);
  deepEqual([run.status, run.conclusion], ["completed", "success"]);
  deepEqual(told(run), ["a success", "b success", "c success"]);
  equal(run.jobs[1]?.cells.length, 2);
});

test("CI-3, CI-5: transitive ancestors decide, skipped jobs pass, and failed ones fail the run", async () => {
  const text = jobs({
    a: "if: false",
    b: "needs: a\n    if: always()",
    c: "needs: b",
    d: "needs: b\n    if: failure()",
  });
  const skipped = await play(text);
  deepEqual(
    [skipped.run.conclusion, ...told(skipped.run)],
    ["success", "a skipped", "b success", "c skipped", "d skipped"],
  );
  equal(skipped.run.jobs[2]?.reason, "if: success() is false (a was skipped)");
  const failed = await play(text, { b: "failure" });
  deepEqual(
    [failed.run.conclusion, ...told(failed.run)],
    ["failure", "a skipped", "b failure", "c skipped", "d success"],
  );
});

test("CI-4, CI-9: a failed job still has outputs, and one that may fail counts as successful", async () => {
  const text = jobs({
    a: "",
    b: "needs: a\n    if: failure() && needs.a.outputs.why == 'late'",
    c: "continue-on-error: true",
    d: "needs: c",
  });
  const { run } = await play(text, { a: "failure why=late", c: "failure" });
  deepEqual(told(run), ["a failure", "b success", "c success", "d success"]);
});

test("CI-20: a failing cell stops those that wait, unless fail-fast is off", async () => {
  const cells = (more: string): string => jobs({ a: `strategy: { matrix: { x: [1, 2, 3] }, max-parallel: 1${more} }` });
  const quick = await play(cells(""), { "a (1)": "failure" });
  deepEqual([quick.run.conclusion, quick.ran], ["failure", ["a (1)"]]);
  const patient = await play(cells(", fail-fast: false"), { "a (1)": "failure" });
  deepEqual([patient.run.conclusion, patient.ran], ["failure", ["a (1)", "a (2)", "a (3)"]]);
});

test("CI-10: a matrix that cannot be had fails its job with the reason", async () => {
  const { run } = await play(jobs({ a: "strategy: { matrix: { x: \"${{ fromJSON('[') }}\" } }" }));
  deepEqual(told(run), ["a failure"]);
  equal(run.jobs[0]?.reason.includes("Error parsing fromJson"), true);
});

test("P1: a stage that is planned again is planned alike; what cannot run is refused before it is recorded", () => {
  const text = jobs({ a: "strategy: { matrix: { x: [2, 1] } }" });
  const inputs = {
    spec: JSON.stringify(stored(record(text))),
    stage: "a",
    generation: 1,
    needs: [],
    signals: [],
    results: [],
    next: undefined,
  };
  deepEqual(planStage(inputs, record(text)), planStage(inputs, record(text)));
  equal(planRun(record(text), keptRun(text), { ...wishes, key: "push 1" }).requestKey, "push 1");
  throws(() => plan("on: push\njobs: {}"), /compile the workflow/);
  throws(() => plan("on: push\njobs: { a: { uses: ./.github/workflows/b.yml } }"), /called workflows/);
});
