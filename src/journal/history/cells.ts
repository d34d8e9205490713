/** Encodes the rows of one job as a list in one cell, each row as a list of its columns. */
import { Fault } from "#base/fault.ts";
import type { AttemptRow, StageRow, TaskRow } from "#base/history-rows.ts";

export type JobCells = {
  readonly stages: readonly StageRow[];
  readonly tasks: readonly TaskRow[];
  readonly attempts: readonly AttemptRow[];
};

const version = 1;

export function writeCells({ stages, tasks, attempts }: JobCells): string {
  return JSON.stringify([version, stages.map(stageCells), tasks.map(taskCells), attempts.map(attemptCells)]);
}

export function readCells(shard: number, job: number, text: string): JobCells {
  const [stages, tasks, attempts] = cellsOf(text);
  return {
    stages: stages.map(stageOf(shard, job)),
    tasks: tasks.map(taskOf(shard, job)),
    attempts: attempts.map(attemptOf(shard, job)),
  };
}

/** The task numbers in the cell. */
export const tasksIn = (text: string): readonly number[] => (text === "" ? [] : cellsOf(text)[1].map(([task]) => task));

type StageCells = readonly [number, string, string, number, number, string, number, number];
type TaskCells = readonly [
  ...[number, number, string, string, number, number],
  ...[string, readonly string[], string, number, number],
];
type AttemptCells = readonly [number, number, string, string, string, number, number, number];
type Cells = readonly [readonly StageCells[], readonly TaskCells[], readonly AttemptCells[]];

function cellsOf(text: string): Cells {
  const [found, ...cells] = JSON.parse(text) as [number, ...Cells];
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
