/** The runners of this door, one call at a time, over a store in memory. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { mkdtemp, rm, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { createMemoryStore } from "#blobs/memory/memory-store.ts";
import type { Store } from "#blobs/store.ts";
import type { TaskPlan } from "#kernel/model/model.ts";
import type { PlanInputs } from "#kernel/read/query.ts";
import { realClock } from "#testing/real-clock.ts";
import type { RunContext, RunOutcome } from "#worker/runner.ts";
import { ScratchDir } from "#worker/scratch.ts";
import { LinkCache } from "#worker/stage/link-cache.ts";
import { grantedTask } from "#worker/testing/granted.ts";
import type { TaskResult } from "./documents.ts";
import { uncounted } from "./metrics.ts";
import { kinds, type BatchJob } from "./plan.ts";
import { batchPlanners, batchRunners } from "./run.ts";
import { Memory } from "./run/memory.ts";
import { Engines } from "./run/engines.ts";
import { openOracle } from "./testing/oracle.ts";
import { listedIn, setsOf } from "#kernel/model/task-set.ts";

type Done = Extract<RunOutcome, { kind: "done" }>;

describe("the worker's part of a query", () => {
  let folder = "";
  let engines: Engines;
  let files: LinkCache;
  let lost = new Set<string>();
  const invalidated: string[] = [];
  const memory = createMemoryStore({ clock: realClock, sizeBytesMax: 64 * 1024 * 1024 });
  /** Loses what a test says. */
  const store: Pick<Store, "forTenant"> = {
    forTenant(tenant) {
      const { blobs, uploads } = memory.forTenant(tenant);
      const missing = async (digests: readonly string[]): Promise<readonly string[]> => [
        ...(await blobs.missing(digests)),
        ...digests.filter((digest) => lost.has(digest)),
      ];
      return { uploads, blobs: { ...blobs, missing, read: blobs.read.bind(blobs), write: blobs.write.bind(blobs) } };
    },
  };

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "millrace-runners-"));
    engines = new Engines({ clock: realClock, enginesMax: 1 });
    files = await LinkCache.open({ folder: join(folder, "packs"), bytesMax: 64 * 1024 * 1024 });
    const oracle = await openOracle();
    await oracle.run(
      `copy (select range as a, range % 7 as b from range(10000)) to '${folder}/t.parquet' (row_group_size 2048)`,
    );
  });
  after(async () => {
    await engines[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  const ports = () => ({
    blobs: store.forTenant("all").blobs,
    store,
    engines,
    files,
    scratch: (name: string) => ScratchDir.create(join(folder, "tasks"), name),
    memoryBytes: 256 * 1024 * 1024,
    memory: new Memory(1024 ** 3),
    spillBytes: 1024 ** 3,
    warn: () => {},
    grants: [],
    counts: uncounted,
    nowMs: () => performance.now(),
    invalidate: async (taskId: string, generation: number) => void invalidated.push(`${taskId} ${generation}`),
  });
  const context = (kind: string, spec: string, taskId: string): RunContext => ({
    task: grantedTask({ kind, spec, taskId, door: "batch" }),
    signal: new AbortController().signal,
    blobs: memory.forTenant("t").blobs,
    clock: realClock,
    report: () => {},
  });
  const run = async (kind: string, spec: string, taskId = "t0-1"): Promise<RunOutcome> => {
    const runner = batchRunners(ports())[kind];
    ok(runner);
    return await runner(context(kind, spec, taskId));
  };
  const job: BatchJob = {
    sql: "select b, count(*) as n from 't.parquet' group by b",
    get folder() {
      return folder;
    },
    settings: { splitBytes: 20_000, broadcastBytes: 1, partitions: 2, reduceBytes: 1 },
    isExplained: false,
  };
  type Results = PlanInputs["results"][number][];
  const wave = async (number: number, results: Results): Promise<readonly TaskPlan[] | string> => {
    const planner = batchPlanners({ blobs: store.forTenant("all").blobs })[kinds.wave];
    ok(planner);
    const inputs = {
      spec: JSON.stringify(job),
      stage: "",
      generation: 1,
      needs: [],
      signals: [],
      results,
      next: undefined,
    };
    const plan = await planner(inputs, { ...context(kinds.wave, "", "t0-9"), task: grantedTask({ stage: number }) });
    return plan.kind === "tasks" ? setsOf(plan).flatMap((set) => listedIn(set)) : plan.kind;
  };
  const asResult = (stage: number, key: string, { payload, digests = [] }: Done): Results[number] => ({
    stage,
    key,
    generation: 1,
    phase: "SUCCEEDED",
    result: { payload, digests },
  });
  /** All of the first wave. */
  const mapped = async (): Promise<Results> => {
    const planned = (await run(kinds.plan, JSON.stringify(job))) as Done;
    equal(planned.kind, "done");
    const results = [asResult(0, "plan", planned)];
    const tasks = (await wave(1, results)) as readonly TaskPlan[];
    for (const [i, { key, spec }] of tasks.entries())
      results.push(asResult(1, key, (await run(kinds.part, spec, `t0-${10 + i}`)) as Done));
    return results;
  };

  test("plans, runs a wave, plans the next from its results, and knows when it is done", async () => {
    const results = await mapped();
    const tasks = (await wave(2, results)) as readonly TaskPlan[];
    equal(tasks.length, 2);
    for (const { key, spec } of tasks) {
      const done = (await run(kinds.part, spec)) as Done;
      equal((JSON.parse(done.payload) as TaskResult).isResult, true);
      deepEqual(done.digests?.length, 1);
      results.push(asResult(2, key, done));
    }
    equal(await wave(3, results), "skip");
  });

  test("plans the same tasks from the same results, in whatever order they came", async () => {
    const results = await mapped();
    const [plan, ...parts] = results;
    ok(plan);
    deepEqual(await wave(2, [plan, ...parts.toReversed()]), await wave(2, results));
  });

  test("has a lost pack written again by the task that wrote it, and by no other", async () => {
    const results = await mapped();
    const [task] = (await wave(2, results)) as readonly TaskPlan[];
    const second = JSON.parse(results[2]?.result?.payload ?? "") as TaskResult;
    lost = new Set([second.pack]);
    try {
      const outcome = await run(kinds.part, task?.spec ?? "");
      equal(outcome.kind === "failed" && outcome.reason, "input-lost");
      deepEqual(invalidated.splice(0), [`${second.by.task} ${second.by.generation}`]);
    } finally {
      lost = new Set();
    }
    equal((await run(kinds.part, task?.spec ?? "")).kind, "done");
  });

  test("does not read a file that was changed after the job began", async () => {
    const planned = (await run(kinds.plan, JSON.stringify(job))) as Done;
    const [task] = (await wave(1, [asResult(0, "plan", planned)])) as readonly TaskPlan[];
    await utimes(join(folder, "t.parquet"), 1, 1);
    const outcome = await run(kinds.part, task?.spec ?? "");
    equal(outcome.kind === "failed" && outcome.reason, "user-failure");
    match(outcome.kind === "failed" ? outcome.message : "", /changed or removed after the job began/);
  });

  test("says what is wrong with a query", async () => {
    const outcome = await run(kinds.plan, JSON.stringify({ ...job, folder, sql: "select * from 'missing.csv'" }));
    match(outcome.kind === "failed" ? outcome.message : "", /missing.csv.*there is no such file/);
    equal(outcome.kind === "failed" && outcome.reason, "user-failure");
  });
});
