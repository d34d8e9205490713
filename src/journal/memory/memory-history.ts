import { Fault } from "#base/fault.ts";
import type { ShardId } from "#base/ids.ts";
import { jobsPage, jobsStart, newestFirst } from "#journal/history/cursor.ts";
import type { AttemptRow, JobRow, StageRow, StepRow, TaskRow } from "#base/history-rows.ts";
import { countedMax, isMeant } from "#journal/history/filter.ts";
import type { Epoch, History, Seq } from "#journal/journal.ts";

type Shelf = {
  through: Seq;
  readonly jobs: Map<number, JobRow>;
  readonly stages: Map<string, StageRow>;
  readonly tasks: Map<number, TaskRow>;
  readonly attempts: Map<string, AttemptRow>;
  readonly steps: Map<string, StepRow>;
  readonly submissions: Map<number, string>;
};

export function memoryHistory(epochOf: (shard: ShardId) => Epoch | undefined): History {
  const shelves = new Map<ShardId, Shelf>();
  const shelf = (shard: ShardId): Shelf => {
    const known = shelves.get(shard);
    if (known) return known;
    const fresh: Shelf = {
      through: 0,
      jobs: new Map(),
      stages: new Map(),
      tasks: new Map(),
      attempts: new Map(),
      steps: new Map(),
      submissions: new Map(),
    };
    shelves.set(shard, fresh);
    return fresh;
  };

  const checkCurrent = (doing: string, shard: ShardId, epoch: Epoch): void => {
    const current = epochOf(shard);
    if (current !== epoch) throw new Fault("stale", doing, { shard, epoch, current });
  };

  return {
    async record(shard, { epoch, throughSeq }, rows) {
      checkCurrent("record history", shard, epoch);
      const kept = shelf(shard);
      if (throughSeq < kept.through) return;
      kept.through = throughSeq;
      for (const row of rows.jobs) kept.jobs.set(row.job, row);
      for (const { job, request } of rows.submissions ?? []) kept.submissions.set(job, request);
      for (const row of rows.stages) kept.stages.set(`${row.job}/${row.stage}`, row);
      for (const row of rows.tasks) kept.tasks.set(row.task, row);
      for (const row of rows.attempts) kept.attempts.set(`${row.task}/${row.token}`, row);
      for (const row of rows.steps) kept.steps.set(`${row.task}/${row.token}/${row.step}`, row);
    },

    cursor: async (shard) => shelves.get(shard)?.through ?? 0,

    async reset(shard, epoch) {
      checkCurrent("reset history", shard, epoch);
      shelf(shard).through = 0;
    },

    async job(shard, job) {
      const kept = shelves.get(shard);
      const found = kept?.jobs.get(job);
      if (!kept || !found) return undefined;
      const ofJob = <T extends { readonly job: number }>(rows: Iterable<T>): T[] =>
        [...rows].filter((row) => row.job === job);
      const tasks = ofJob(kept.tasks.values()).sort((a, b) => a.task - b.task);
      const wanted = new Set(tasks.map(({ task }) => task));
      const submission = kept.submissions.get(job);
      return {
        ...(submission !== undefined && { submission }),
        job: found,
        stages: ofJob(kept.stages.values()).sort((a, b) => a.stage - b.stage),
        tasks,
        attempts: ofJob(kept.attempts.values()).sort((a, b) => a.task - b.task || a.token - b.token),
        steps: [...kept.steps.values()]
          .filter(({ task }) => wanted.has(task))
          .sort((a, b) => a.task - b.task || a.token - b.token || a.step - b.step),
      };
    },

    async jobs(query) {
      const place = jobsStart(query);
      const rows = [...shelves.values()]
        .flatMap(({ jobs }) => [...jobs.values()])
        .filter((row) => isMeant(query, row))
        .filter((row) => place === undefined || newestFirst(place, row) < 0)
        .sort(newestFirst);
      return jobsPage(rows.slice(0, query.limit + 1), query.limit);
    },

    async count(filter) {
      const ended = [...shelves.values()]
        .flatMap(({ jobs }) => [...jobs.values()])
        .filter((row) => row.endedAtMs > 0 && isMeant(filter, row))
        .slice(0, countedMax + 1);
      const byPhase = Map.groupBy(ended, ({ phase }) => phase);
      const phases = [...byPhase].map(([phase, rows]) => ({ phase, jobs: rows.length }));
      return { phases, capped: ended.length > countedMax };
    },

    async trim(shard, endedBeforeMs, limit) {
      const kept = shelf(shard);
      const old = [...kept.jobs.values()].filter(({ endedAtMs }) => endedAtMs > 0 && endedAtMs < endedBeforeMs);
      const gone = new Set(
        old
          .sort((a, b) => newestFirst(b, a))
          .slice(0, limit)
          .map(({ job }) => job),
      );
      const tasks = new Set([...kept.tasks.values()].filter(({ job }) => gone.has(job)).map(({ task }) => task));
      for (const job of gone) kept.submissions.delete(job);
      for (const job of gone) kept.jobs.delete(job);
      for (const task of tasks) kept.tasks.delete(task);
      for (const [key, { job }] of kept.stages) if (gone.has(job)) kept.stages.delete(key);
      for (const [key, { job }] of kept.attempts) if (gone.has(job)) kept.attempts.delete(key);
      for (const [key, { task }] of kept.steps) if (tasks.has(task)) kept.steps.delete(key);
      return gone.size;
    },
  };
}
