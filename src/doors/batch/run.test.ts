/** The runners of this door, one call at a time, over a store in memory. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { utimes } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { TaskPlan } from "#kernel/model/model.ts";
import type { TaskResult } from "./documents.ts";
import { kinds } from "./plan.ts";
import { asResult, RunnerLab, type Done, type Results } from "./testing/runner-lab.ts";

describe("the worker's part of a query", () => {
  let lab: RunnerLab;
  before(async () => {
    lab = await RunnerLab.open();
  });
  after(() => lab[Symbol.asyncDispose]());

  /** All of the first wave. */
  const mapped = async (): Promise<Results> => await lab.waved(1, [await lab.planned()]);

  test("plans, runs a wave, plans the next from its results, and knows when it is done", async () => {
    const results = await mapped();
    const tasks = (await lab.wave(2, results)) as readonly TaskPlan[];
    equal(tasks.length, 2);
    for (const { key, spec } of tasks) {
      const done = (await lab.run(kinds.part, spec)) as Done;
      equal((JSON.parse(done.payload) as TaskResult).isResult, true);
      deepEqual(done.digests?.length, 1);
      results.push(asResult(2, key, done));
    }
    equal(await lab.wave(3, results), "skip");
  });

  test("plans the same tasks from the same results, in whatever order they came", async () => {
    const results = await mapped();
    const [plan, ...parts] = results;
    ok(plan);
    deepEqual(await lab.wave(2, [plan, ...parts.toReversed()]), await lab.wave(2, results));
  });

  test("BATCH-7, BATCH-10: has all lost packs written again at once, by the tasks that wrote them", async () => {
    const results = await mapped();
    const [task] = (await lab.wave(2, results)) as readonly TaskPlan[];
    const [, second, third] = results.slice(1).map(({ result }) => JSON.parse(result?.payload ?? "") as TaskResult);
    ok(second && third);
    lab.lost = new Set([second.pack, third.pack]);
    try {
      const outcome = await lab.run(kinds.part, task?.spec ?? "");
      equal(outcome.kind === "failed" && outcome.reason, "input-lost");
      const wanted = [second, third].map(({ by }) => `${by.task} ${by.generation}`);
      deepEqual(lab.invalidated.splice(0), wanted);
    } finally {
      lab.lost = new Set();
    }
    equal((await lab.run(kinds.part, task?.spec ?? "")).kind, "done");
  });

  test("BATCH-7: a pack that was written again, the same, makes the same tasks", async () => {
    const results = await mapped();
    const again = results.map((one, i) => {
      const told = JSON.parse(one.result?.payload ?? "{}") as TaskResult;
      const by = { ...told.by, generation: 2 };
      return i === 1
        ? { ...one, generation: 2, result: { digests: [], payload: JSON.stringify({ ...told, by, ms: 1 }) } }
        : one;
    });
    deepEqual(await lab.wave(2, again), await lab.wave(2, results));
  });

  test("BATCH-6, BATCH-8: a pack that came out otherwise makes other tasks of all that read it", async () => {
    const results = await mapped();
    const before = (await lab.wave(2, results)) as readonly TaskPlan[];
    const [plan, first, ...others] = results;
    ok(plan && first?.result);
    const told = JSON.parse(first.result.payload) as TaskResult;
    const other = JSON.parse(others[0]?.result?.payload ?? "") as TaskResult;
    const payload = JSON.stringify({ ...told, pack: other.pack });
    const changed = [plan, { ...first, result: { ...first.result, payload } }, ...others];
    const after_ = (await lab.wave(2, changed)) as readonly TaskPlan[];
    equal(after_.length, before.length);
    for (const [i, { key, spec }] of after_.entries()) {
      equal(key, before[i]?.key);
      equal(spec === before[i]?.spec, false);
    }
  });

  test("BATCH-8: results that read another generation are computed again before anything reads both", async () => {
    const results = await lab.waved(2, await mapped());
    const isDone = await lab.wave(3, results);
    equal(isDone, "skip");
    const [plan, first, ...others] = results;
    ok(plan && first?.result);
    const told = JSON.parse(first.result.payload) as TaskResult;
    const other = JSON.parse(others[0]?.result?.payload ?? "") as TaskResult;
    const payload = JSON.stringify({ ...told, pack: other.pack });
    const again = await lab.wave(3, [plan, { ...first, result: { ...first.result, payload } }, ...others]);
    ok(typeof again !== "string", "the query counts as answered");
    deepEqual(
      again.map(({ key }) => key),
      ((await lab.wave(2, results.slice(0, results.length - 2))) as readonly TaskPlan[]).map(({ key }) => key),
    );
  });

  test("BATCH-44: does not read a file that was changed after the job began", async () => {
    const [task] = (await lab.wave(1, [await lab.planned()])) as readonly TaskPlan[];
    await utimes(join(lab.folder, "t.parquet"), 1, 1);
    const outcome = await lab.run(kinds.part, task?.spec ?? "");
    equal(outcome.kind === "failed" && outcome.reason, "user-failure");
    match(outcome.kind === "failed" ? outcome.message : "", /changed or removed after the job began/);
  });

  test("says what is wrong with a query", async () => {
    const outcome = await lab.run(kinds.plan, JSON.stringify({ ...lab.job, sql: "select * from 'missing.csv'" }));
    match(outcome.kind === "failed" ? outcome.message : "", /missing.csv.*there is no such file/);
    equal(outcome.kind === "failed" && outcome.reason, "user-failure");
  });
});
