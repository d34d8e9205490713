/** How runs are planned, on the real kernel. */
import { deepEqual, equal, throws } from "node:assert/strict";
import { test } from "node:test";
import type { Plan } from "#kernel/model/model.ts";
import type { PlanInputs } from "#kernel/read/query.ts";
import { cellKey } from "./cell-key.ts";
import { planConclusion, planRun, planStage } from "./plan.ts";
import { jobs, keptRun, plan, play, record, stored, told, wishes } from "./testing/run-rig.ts";

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
  deepEqual(
    run.jobs.map(({ cells }) => cells[0]?.isFailureAllowed),
    [undefined, undefined, true, undefined],
  );
});

test("CI-20: a failing cell stops those that wait, unless fail-fast is off", async () => {
  const cells = (more: string): string => jobs({ a: `strategy: { matrix: { x: [1, 2, 3] }, max-parallel: 1${more} }` });
  const quick = await play(cells(""), { "a (1)": "failure" });
  deepEqual([quick.run.conclusion, quick.ran], ["failure", ["a (1)"]]);
  const patient = await play(cells(", fail-fast: false"), { "a (1)": "failure" });
  deepEqual([patient.run.conclusion, patient.ran], ["failure", ["a (1)", "a (2)", "a (3)"]]);
});

test("CI-14: a job that no runner took in a day is cancelled, one that ran and failed has failed", () => {
  const text = jobs({ a: "", b: "needs: a\n    if: needs.a.result == 'cancelled'" });
  const inputs = (failure: object) => ({
    spec: JSON.stringify(stored(record(text))),
    generation: 1,
    signals: [],
    next: undefined,
    needs: [{ stage: 0, name: "a", phase: "FAILED", reason: "" }],
    results: [{ stage: 0, key: cellKey([0], "a"), phase: "FAILED", ...failure }],
  });
  const ran = { failure: { reason: "lost", message: "its runner was lost" } };
  const conclude = (failure: object) =>
    planConclusion({ ...inputs(failure), stage: "" } as unknown as PlanInputs, record(text));
  equal(reasonOf(conclude({})), "cancelled: a");
  equal(reasonOf(conclude(ran)), "failed: a");
});

const reasonOf = (made: Plan): string | undefined => ("reason" in made ? made.reason : undefined);

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
  throws(() => plan("on: push\njobs: { a: { uses: ./.github/workflows/b.yml } }"), /b.yml' was not found/);
});

test("CI-60: cancel-in-progress is an expression, queues are long, and a run's id is its own group", () => {
  const lock = (concurrency: string, unique?: string) => {
    const text = `concurrency: ${concurrency}\n${jobs({ a: "" })}`;
    const { lock: found } = planRun(record(text), keptRun(text), { ...wishes, unique });
    return [found?.name.split(" ")[2], found?.queueMax, found?.cancelInProgress];
  };
  deepEqual(lock("g"), ["g", 1, false]);
  deepEqual(lock("{ group: g, queue: max }"), ["g", 100, false]);
  const eager = "{ group: g, cancel-in-progress: \"${{ github.ref == 'refs/heads/main' }}\" }";
  deepEqual(lock(eager), ["g", 1, true]);
  deepEqual(lock(eager.replace("==", "!=")), ["g", 1, false]);
  deepEqual(lock("${{ github.head_ref || github.run_id }}", "run-7"), ["run-7", 1, false]);
});
