// Pages of tasks as shards answer them: of one stage and one generation, also when another node owns the shard.
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { test } from "node:test";
import type { JobView, StageView, TaskView } from "#kernel/read/query.ts";
import type { Job } from "#shard/client/client.ts";
import { stageResults } from "./stage-results.ts";

const taskOf = (n: number, stage = 1): TaskView => ({
  task: 10 + n,
  job: 1,
  stage,
  key: String(n),
  kind: "k",
  phase: "SUCCEEDED",
  planning: false,
  generation: 1,
  attempts: 1,
  claims: [],
  result: { payload: `made ${n}`, digests: [] },
  lastFailure: undefined,
  steps: [],
  retryInMs: undefined,
});

const tasks = Array.from({ length: 1_200 }, (_, n) => taskOf(n));

function jobOf(live: boolean, shown: readonly TaskView[], more: Partial<StageView> = {}): Job {
  const base = { needs: [], phase: "COMPLETED", reason: "", generation: 1, done: 0, failed: 0, running: 0 } as const;
  const stages = [
    { ...base, stage: 0, name: "first", tasks: 1, waitsForSignals: [] },
    { ...base, stage: 1, name: "second", tasks: tasks.length, waitsForSignals: [], ...more },
  ];
  return { jobId: "j0-1", live, view: { stages, tasks: shown } as unknown as JobView };
}

type Ask = { readonly tasksMax?: number; readonly of?: { readonly tasksFrom: number } };

const asked = { stage: "second", from: 0, limit: 1_000_000, signal: AbortSignal.timeout(60_000) };

async function read(answer: (from: number, max: number) => Job, wanted: Partial<typeof asked> = {}) {
  const work = {
    job: async (_: string, { tasksMax = 0, of }: Ask = {}) => answer(of?.tasksFrom ?? 0, tasksMax),
    manifestOf: async () => undefined,
  };
  return await Array.fromAsync(await stageResults({ work }, { job: jobOf(true, []), ...asked, ...wanted }));
}

test("tasks of a living stage are read page by page", async () => {
  const lines = await read((from, max) => jobOf(true, tasks.slice(from, from + max)));
  equal(lines.length, 1 + tasks.length);
  deepEqual(lines.at(-1), {
    kind: "result",
    task: "t0-xl",
    key: "1199",
    phase: "SUCCEEDED",
    generation: 1,
    result: "made 1199",
    digests: [],
  });
  const some = await read((from, max) => jobOf(true, tasks.slice(from, from + max)), { from: 600, limit: 2 });
  deepEqual(
    some.slice(1).map((line) => line.kind === "result" && line.key),
    ["600", "601"],
  );
});

test("a job that leaves memory between two pages is read on from history", async () => {
  const history = jobOf(false, [taskOf(-5, 0), ...tasks]);
  const lines = await read((from, max) => (from === 0 ? jobOf(true, tasks.slice(0, max)) : history));
  equal(lines.length, 1 + tasks.length);
});

test("an answer never mixes generations, nor stages where an owner of an earlier version answers", async () => {
  const again = (from: number, max: number): Job =>
    jobOf(true, tasks.slice(from, from + max), from === 0 ? {} : { generation: 2 });
  await rejects(read(again), /runs again/);
  await rejects(
    read((_, max) => jobOf(true, tasks.slice(0, max))),
    /earlier version/,
  );
  await rejects(
    read(() => jobOf(true, [taskOf(0, 0)])),
    /earlier version/,
  );
});

test("a stage that has ended, and of which history knows fewer tasks, is not complete", async () => {
  const work = { job: () => Promise.reject(new Error("not asked")), manifestOf: async () => undefined };
  const job = jobOf(false, tasks.slice(0, 5));
  const [head] = await Array.fromAsync(await stageResults({ work }, { job, ...asked }));
  ok(head?.kind === "stage" && !head.complete);
});

test("an array that runs, or whose stage ended without a list, is refused before the first line", async () => {
  const work = { job: () => Promise.reject(new Error("not asked")), manifestOf: async () => undefined };
  for (const [phase, said] of [
    ["RUNNING", /when its stage has ended/],
    ["CANCELLED", /before its results were listed/],
  ] as const) {
    const job = jobOf(true, [], { phase, arrays: [{ task: 10, count: 1_200, first: 0 }] });
    await rejects(stageResults({ work }, { job, ...asked }), said);
  }
});
