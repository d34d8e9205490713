/** The three rates of a queue: taking in, handing out and getting back, and all of it at once. */
import type { Grant, Step } from "#kernel/model/model.ts";
import { Arrivals } from "./arrivals.ts";
import { loops, percentile, stretch, type ServerCpu, type Stretch } from "#bench/measure.ts";
import type { Rig } from "./rig.ts";
import { commitTasks, nextNo, reserveTasks, submitJob, type Bringing, type JobOptions } from "./work.ts";

/** Where something is far slower than foreseen, the benchmark still comes to its end. */
const cellMsMax = 5_000;

export const load = { submitters: 1_000, executors: 40, claim: 100 };

export type Shape = JobOptions & { readonly tasksPerJob: number };

/** Jobs submitted one by one, a thousand at a time; counted in tasks. */
export function enqueue(rig: Rig, shape: Shape, countMax: number, server?: ServerCpu): Promise<Stretch> {
  const { tasksPerJob } = shape;
  const atOnce = Math.max(10, Math.ceil(load.submitters / tasksPerJob));
  return stretch(
    () =>
      loops({ atOnce, forMs: cellMsMax, countMax: countMax - atOnce * tasksPerJob + 1 }, async (lane) => {
        await submitJob(rig, lane % rig.shards, tasksPerJob, shape);
        return tasksPerJob;
      }),
    server,
  );
}

export type Draining = { readonly executors: number; readonly claim: number; readonly bringing: Bringing };

/** Claims so many at a time and commits them, so that up to 4,000 commits are under way. */
export function drain(
  rig: Rig,
  server?: ServerCpu,
  { executors, claim, bringing }: Draining = { ...load, bringing: "together" },
): Promise<Stretch> {
  const untilMono = performance.now() + cellMsMax;
  const arrivals = new Arrivals();
  let done = 0;
  const executor = async (no: number): Promise<void> => {
    const name = `executor-${no}`;
    let empty = 0;
    for (let shard = no; empty < rig.shards && performance.now() < untilMono; shard += 1) {
      await arrivals.turn();
      const grants = await reserveTasks(rig, shard % rig.shards, { executor: name, count: claim });
      await arrivals.turn();
      empty = grants.length === 0 ? empty + 1 : 0;
      await commitTasks(rig, shard % rig.shards, name, grants, bringing);
      done += grants.length;
    }
  };
  return stretch(async () => {
    await Promise.all(Array.from({ length: executors }, (_, no) => executor(no)));
    return done;
  }, server);
}

export type EndToEnd = Stretch & { readonly p50Ms: number; readonly p99Ms: number };

/** Every submitter waits until all tasks of its job are committed before it submits the next. */
export async function endToEnd(rig: Rig, shape: Shape, forMs: number, server?: ServerCpu): Promise<EndToEnd> {
  const { tasksPerJob } = shape;
  const stop = new AbortController();
  const jobs = Array.from({ length: rig.shards }, () => new Map<number, { left: number; resolve: () => void }>());
  const early = Array.from({ length: rig.shards }, () => new Map<number, number>());
  const finished = (shard: number, { job }: Grant): void => {
    const waiting = jobs[shard]?.get(job);
    if (!waiting) return void early[shard]?.set(job, (early[shard].get(job) ?? 0) + 1);
    waiting.left -= 1;
    if (waiting.left === 0 && jobs[shard]?.delete(job)) waiting.resolve();
  };
  const executor = async (no: number): Promise<void> => {
    const name = `executor-${no}`;
    const shard = no % rig.shards;
    while (!stop.signal.aborted) {
      const grants = await reserveTasks(rig, shard, { executor: name, count: load.claim, waitMs: 100 });
      await commitTasks(rig, shard, name, grants);
      for (const grant of grants) finished(shard, grant);
    }
  };
  const executors = Array.from({ length: load.executors }, (_, no) => executor(no));
  const tookMs: number[] = [];
  const measured = await stretch(
    () =>
      loops({ atOnce: Math.max(10, Math.ceil((2 * load.submitters) / tasksPerJob)), forMs }, async (lane) => {
        const shard = lane % rig.shards;
        const startedMono = performance.now();
        const { job } = await submitJob(rig, shard, tasksPerJob, shape);
        const left = tasksPerJob - (early[shard]?.get(job) ?? 0);
        early[shard]?.delete(job);
        if (left > 0) await new Promise<void>((resolve) => jobs[shard]?.set(job, { left, resolve }));
        tookMs.push(performance.now() - startedMono);
        return tasksPerJob;
      }),
    server,
  );
  stop.abort();
  await Promise.all(executors);
  return { ...measured, p50Ms: percentile(tookMs, 0.5), p99Ms: percentile(tookMs, 0.99) };
}

/** Step reports of running tasks, each a command of its own, two thousand at a time; counted in steps. */
export async function report(rig: Rig, stepsEach: number, forMs: number, server?: ServerCpu): Promise<Stretch> {
  const executor = `reporter-${nextNo()}`;
  const tasks = 2_000;
  for (let i = 0; i < tasks; i += 100) await submitJob(rig, 0, 100);
  const grants = [
    ...(await reserveTasks(rig, 0, { executor, count: 1_000 })),
    ...(await reserveTasks(rig, 0, { executor, count: 1_000 })),
  ];
  const turns = grants.map(() => 0);
  const statuses = ["started", "succeeded"] as const;
  const measured = await stretch(
    () =>
      loops({ atOnce: grants.length, forMs }, async (lane) => {
        const grant = grants[lane];
        if (!grant) return 0;
        const steps = Array.from({ length: stepsEach }, (): Step => {
          const turn = (turns[lane] = (turns[lane] ?? 0) + 1) % 40;
          return { step: turn >> 1, name: `step ${turn >> 1}`, status: statuses[turn & 1] ?? "progress" };
        });
        await rig.ask<"report">(0, { kind: "report", executor, task: grant.task, token: grant.token, steps });
        return stepsEach;
      }),
    server,
  );
  for (let i = 0; i < grants.length; i += 1_000) await commitTasks(rig, 0, executor, grants.slice(i, i + 1_000));
  return measured;
}
