/**
 * A small job in one row. Most jobs have one task, whose row, attempt and stage come along with the job's own and are
 * only ever read with it: as rows of their own, in tables and indices of their own, they cost the store four times as
 * much. What came earlier than the job's row, and all of a large job, lies in the tables as ever.
 *
 * A row that is in both, because the history was written anew in other portions, is the same in both.
 */
import { Fault } from "#base/fault.ts";
import type { AttemptRow, HistoryRows, JobRow, StageRow, TaskRow } from "#base/history-rows.ts";
import type { JobHistory } from "./journal.ts";

/** `whole`: the job's rows of other tables, or nothing. */
export type StoredJob = JobRow & { readonly whole: string };
export type StoredRows = Omit<HistoryRows, "jobs"> & { readonly jobs: readonly StoredJob[] };

/** Larger jobs are better off in tables. */
const rowsMax = 16;
const version = 1;

/** Lists are made with their first row: one that is empty at first makes room for sixteen more. */
class Own {
  stages: StageRow[] = nothing;
  tasks: TaskRow[] = nothing;
  attempts: AttemptRow[] = nothing;

  get size(): number {
    return this.stages.length + this.tasks.length + this.attempts.length;
  }

  get whole(): string {
    if (this.size === 0) return "";
    const { stages, tasks, attempts } = this;
    return JSON.stringify([version, stages.map(stageCells), tasks.map(taskCells), attempts.map(attemptCells)]);
  }
}

/** Shared by those that have none: never written to. */
const nothing: never[] = [];

const withMore = <T>(list: T[], row: T): T[] => {
  if (list.length === 0) return [row];
  list.push(row);
  return list;
};

export function fold(rows: HistoryRows): StoredRows {
  const byJob = new Map<number, Own>();
  for (const { job } of rows.jobs) byJob.set(job, new Own());
  const stages: StageRow[] = [];
  const tasks: TaskRow[] = [];
  const attempts: AttemptRow[] = [];
  for (const row of rows.stages) {
    const own = byJob.get(row.job);
    if (own) own.stages = withMore(own.stages, row);
    else stages.push(row);
  }
  for (const row of rows.tasks) {
    const own = byJob.get(row.job);
    if (own) own.tasks = withMore(own.tasks, row);
    else tasks.push(row);
  }
  for (const row of rows.attempts) {
    const own = byJob.get(row.job);
    if (own) own.attempts = withMore(own.attempts, row);
    else attempts.push(row);
  }
  for (const [job, own] of byJob) {
    if (own.size <= rowsMax) continue;
    for (const row of own.stages) stages.push(row);
    for (const row of own.tasks) tasks.push(row);
    for (const row of own.attempts) attempts.push(row);
    byJob.set(job, new Own());
  }
  const jobs = rows.jobs.map((job): StoredJob => withWhole(job, byJob.get(job.job)?.whole ?? ""));
  return { jobs, stages, tasks, attempts, steps: rows.steps };
}

/** Field by field: a spread for each job costs more than all the rest. */
const withWhole = (job: JobRow, whole: string): StoredJob => ({
  shard: job.shard,
  job: job.job,
  tenant: job.tenant,
  door: job.door,
  name: job.name,
  phase: job.phase,
  reason: job.reason,
  priority: job.priority,
  submittedAtMs: job.submittedAtMs,
  endedAtMs: job.endedAtMs,
  whole,
});

/** What the tables have of a job, and what its own row has. */
export function unfold(found: Omit<JobHistory, "steps">, whole: string): Omit<JobHistory, "steps"> {
  if (whole === "") return found;
  const { shard, job } = found.job;
  const [stages, tasks, attempts] = cellsOf(whole);
  return {
    job: found.job,
    stages: merged(found.stages, stages, stageOf(shard, job), ({ stage }) => [stage]),
    tasks: merged(found.tasks, tasks, taskOf(shard, job), ({ task }) => [task]),
    attempts: merged(found.attempts, attempts, attemptOf(shard, job), ({ task, token }) => [task, token]),
  };
}

/** The numbers of the tasks that are in the job's own row. */
export const tasksIn = (whole: string): readonly number[] =>
  whole === "" ? [] : cellsOf(whole)[1].map(([task]) => task);

function merged<C, T>(
  inTables: readonly T[],
  cells: readonly C[],
  rowOf: (cells: C) => T,
  keyOf: (row: T) => readonly number[],
): T[] {
  const byKey = new Map<string, T>();
  for (const row of [...inTables, ...cells.map(rowOf)]) byKey.set(keyOf(row).join(), row);
  return [...byKey.values()].toSorted((a, b) => {
    const [one, other] = [keyOf(a), keyOf(b)];
    const at = one.findIndex((part, i) => part !== other[i]);
    return at === -1 ? 0 : (one[at] ?? 0) - (other[at] ?? 0);
  });
}

type StageCells = readonly [number, string, string, number, number, string, number, number];
type TaskCells = readonly [
  ...[number, number, string, string, number, number],
  ...[string, readonly string[], string, number, number],
];
type AttemptCells = readonly [number, number, string, string, string, number, number, number];
type Cells = readonly [readonly StageCells[], readonly TaskCells[], readonly AttemptCells[]];

function cellsOf(whole: string): Cells {
  const [found, ...cells] = JSON.parse(whole) as [number, ...Cells];
  if (found !== version) throw new Fault("invalid", "read job history: written by a newer Millrace", { found });
  return cells;
}

const stageCells = (row: StageRow): StageCells => [
  row.stage,
  row.name,
  row.phase,
  row.generation,
  row.tasks,
  row.reason,
  row.startedAtMs,
  row.endedAtMs,
];

const stageOf =
  (shard: number, job: number) =>
  ([stage, name, phase, generation, tasks, reason, startedAtMs, endedAtMs]: StageCells): StageRow => {
    return { shard, job, stage, name, phase, generation, tasks, reason, startedAtMs, endedAtMs };
  };

const taskCells = (row: TaskRow): TaskCells => [
  row.task,
  row.stage,
  row.key,
  row.phase,
  row.generation,
  row.attempts,
  row.result,
  row.digests,
  row.reason,
  row.queuedAtMs,
  row.endedAtMs,
];

const taskOf =
  (shard: number, job: number) =>
  (cells: TaskCells): TaskRow => {
    const [task, stage, key, phase, generation, attempts, result, digests, reason, queuedAtMs, endedAtMs] = cells;
    const about = { shard, task, job, stage, key, phase, generation, attempts };
    return { ...about, result, digests, reason, queuedAtMs, endedAtMs };
  };

const attemptCells = (row: AttemptRow): AttemptCells => [
  row.task,
  row.token,
  row.executor,
  row.outcome,
  row.reason,
  row.grantedAtMs,
  row.startedAtMs,
  row.endedAtMs,
];

const attemptOf =
  (shard: number, job: number) =>
  ([task, token, executor, outcome, reason, grantedAtMs, startedAtMs, endedAtMs]: AttemptCells): AttemptRow => {
    return { shard, task, token, job, executor, outcome, reason, grantedAtMs, startedAtMs, endedAtMs };
  };
