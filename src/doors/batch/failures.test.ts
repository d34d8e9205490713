/** What goes wrong with a task comes out under its own reason, and leaves nothing behind. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { until } from "#testing/until.ts";
import type { TaskPlan } from "#kernel/model/model.ts";
import type { TaskResult } from "./documents.ts";
import { uncounted } from "./metrics.ts";
import { kinds } from "./plan.ts";
import type { BatchPorts } from "./run.ts";
import { Memory } from "./run/memory.ts";
import { RunnerLab } from "./testing/runner-lab.ts";

const MiB = 1024 * 1024;

describe("a task of a query", () => {
  let lab: RunnerLab;
  before(async () => {
    lab = await RunnerLab.open();
  });
  after(() => lab[Symbol.asyncDispose]());

  const only = async (sql: string): Promise<string> => {
    const job = { ...lab.job, sql };
    const [task] = (await lab.wave(1, [await lab.planned(job)], job)) as readonly TaskPlan[];
    ok(task);
    return task.spec;
  };
  const run = async (sql: string, more: Partial<BatchPorts> = {}, outOfMemory = 0) =>
    await lab.run(kinds.part, await only(sql), { outOfMemory }, more);
  const left = (): Promise<string[]> => readdir(join(lab.folder, "tasks"));

  const hungry = "select max(len(l)) as n from (select list(i) as l from range(4000000) t(i))";

  test("BATCH-28: that runs out of memory gets twice as much, as often as it takes", async () => {
    let times = 0;
    const counts = { ...uncounted, outOfMemory: () => void (times += 1) };
    const outcome = await run(hungry, { memoryBytes: 16 * MiB, spillBytes: 1, counts });
    equal(outcome.kind, "done", JSON.stringify(outcome));
    ok(times >= 1 && times <= 5, `${times} times`);
  });

  test("BATCH-28: that needs more than all fails, and says how much it had", async () => {
    const outcome = await run(hungry, { memoryBytes: 16 * MiB, memory: new Memory(20 * MiB), spillBytes: 1 });
    ok(outcome.kind === "failed");
    equal(outcome.reason, "user-failure");
    match(outcome.message, /20 ?MiB.*all that tasks of this node have/s);
  });

  test("BATCH-9, BATCH-29: that finds no room to spill is for another machine, and leaves nothing", async () => {
    const sql =
      "select count(*) as n from (select hash(i)::VARCHAR as h from range(2000000) t(i) order by h offset 10)";
    const outcome = await run(sql, { memoryBytes: 64 * MiB, memory: new Memory(64 * MiB), spillBytes: 1 * MiB });
    ok(outcome.kind === "failed");
    deepEqual([outcome.reason, await left()], ["executor-lost", []], outcome.message);
  });

  test("BATCH-27: that needs more than its memory spills, and the result says so", async () => {
    const sql =
      "select count(*) as n from (select hash(i)::VARCHAR as h from range(1500000) t(i) order by h offset 10)";
    const outcome = await run(sql, { memoryBytes: 48 * MiB, memory: new Memory(48 * MiB) });
    ok(outcome.kind === "done", JSON.stringify(outcome));
    ok(((JSON.parse(outcome.payload) as TaskResult).spilled ?? 0) > 1 * MiB);
  });

  test("BATCH-9: whose engine dies is for another try; whose SQL is wrong is not", async () => {
    const running = run("select count(*) as n from range(100000000000) a");
    await until("the engine runs", () => lab.engines.pids.length > 0);
    const spec = await only("select 1 as one");
    ok(spec);
    await until("the task is there", async () => (await left()).length > 0);
    for (const pid of lab.engines.pids) process.kill(pid, "SIGTERM");
    const died = await running;
    equal(died.kind === "failed" && died.reason, "executor-lost", JSON.stringify(died));
    await until("the idle one has ended, too", () => lab.engines.pids.length === 0);
    const wrong = await run("select cast('x' || a as INTEGER) as x from range(3) t(a)");
    equal(wrong.kind === "failed" && wrong.reason, "user-failure", JSON.stringify(wrong));
    deepEqual(await left(), []);
  });
});
