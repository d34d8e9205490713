/** Pure: what a batch job has come to, from the kernel's view of it. */
import type { Digest } from "#base/digest.ts";
import { formatSize } from "#base/units.ts";
import type { Result } from "#kernel/model/model.ts";
import type { JobView, TaskView } from "#kernel/read/query.ts";
import { commitPayload, type CommitResult, type TaskResult } from "./documents.ts";
import type { PlanResult } from "./plan-wave.ts";
import { kinds, planStage } from "./plan.ts";

export type StageLine = {
  readonly wave: number;
  readonly about: string;
  readonly id: string;
  readonly tasks: number;
  readonly rows: number;
  readonly bytes: number;
  readonly cpuMs: number;
  /** Tasks whose result was there already. */
  readonly reused: number;
  /** Rows that functions failed on and that were left out. */
  readonly skipped: number;
  /** Why the others were computed, each reason once. */
  readonly why: readonly string[];
  /** The largest part of its rows in one task, as a multiple of the mean. */
  readonly skew: number;
  /** Tasks that have been planned; `tasks` of them have ended. */
  readonly planned: number;
  readonly running: number;
  /** Attempts beyond the first that have begun, and tasks that two attempts run at now. */
  readonly again: number;
  readonly twice: number;
  /** What did not fit into memory. */
  readonly spilled: number;
  /** The mean of those that were computed. */
  readonly taskMs?: number | undefined;
  /** Until its tasks have ended, if they take as long as those before; undefined: nothing is known. */
  readonly leftMs?: number | undefined;
};

export type BatchView = {
  readonly phase: JobView["phase"];
  readonly plan: Digest | undefined;
  readonly stages: readonly StageLine[];
  /** Packs of the result in order; undefined while it is not there. */
  readonly result: readonly Digest[] | undefined;
  /** Where it was written to, once it was. */
  readonly written: CommitResult["written"] | undefined;
  /** How many stages there will be, as far as the sources tell. */
  readonly foreseen: number | undefined;
  /** Why it did not succeed. */
  readonly failure: string | undefined;
};

export function viewBatch(view: JobView): BatchView {
  const done = view.tasks.filter(({ result, planning }) => result !== undefined && !planning);
  const planned = done.find(({ stage }) => stage === planStage)?.result;
  const commit = done.find(({ result }) => result?.payload.startsWith(commitPayload))?.result;
  const parts = done
    .filter(({ kind }) => kind === kinds.part)
    .map(({ stage, result }): Part => ({ wave: stage, ...(JSON.parse(result?.payload ?? "{}") as TaskResult) }));
  const stages = new Map<string, StageTasks>();
  for (const task of view.tasks) if (task.kind === kinds.part) stageIn(stages, task).tasks.push(task);
  for (const part of parts) stages.get(part.stage)?.parts.push(part);
  const last = parts.filter(({ isResult }) => isResult).toSorted((a, b) => a.part - b.part);
  const plan = planned && (JSON.parse(planned.payload) as PlanResult);
  const failed = view.tasks.find(({ phase, lastFailure }) => phase === "FAILED" && lastFailure);
  return {
    phase: view.phase,
    plan: plan?.plan,
    foreseen: plan?.stages,
    stages: [...stages.entries()].map(([id, all]) => lineOf(id, all)),
    result: view.phase === "SUCCEEDED" && last.length > 0 ? last.map(({ pack }) => pack) : undefined,
    written: commit && (JSON.parse(commit.payload) as CommitResult).written,
    failure: failed?.lastFailure?.message ?? view.stages.find(({ phase }) => phase === "FAILED")?.reason,
  };
}

type Part = TaskResult & { readonly wave: number };
type StageTasks = { readonly tasks: TaskView[]; readonly parts: Part[] };

/** Keys of tasks begin with their stage. */
function stageIn(stages: Map<string, StageTasks>, { key }: TaskView): StageTasks {
  const id = key.slice(0, key.indexOf(" "));
  const found = stages.get(id) ?? { tasks: [], parts: [] };
  stages.set(id, found);
  return found;
}

function lineOf(id: string, { tasks, parts }: StageTasks): StageLine {
  const sum = (of: (part: TaskResult) => number): number => parts.reduce((all, part) => all + of(part), 0);
  const [first] = parts;
  const computed = parts.flatMap(({ ms, reused }) => (ms === undefined || reused ? [] : [ms]));
  const taskMs =
    computed.length === 0 ? undefined : Math.round(computed.reduce((all, one) => all + one, 0) / computed.length);
  const running = tasks.filter(({ claims }) => claims.length > 0).length;
  return {
    wave: first?.wave ?? tasks[0]?.stage ?? 0,
    about: first?.about ?? `stage ${id.slice(0, 8)}`,
    id,
    tasks: parts.length,
    rows: sum(({ rows }) => rows),
    bytes: sum(({ bytes }) => bytes),
    cpuMs: sum(({ cpuMs, reused }) => (reused ? 0 : cpuMs)),
    reused: parts.filter(({ reused }) => reused).length,
    skipped: sum(({ skipped = 0 }) => skipped),
    why: [...new Set(parts.flatMap(({ why }) => (why === undefined ? [] : [why])))].slice(0, whyMax),
    skew: skewOf(parts.map(({ rows }) => rows)),
    planned: tasks.length,
    running,
    again: tasks.reduce((all, { attempts }) => all + Math.max(0, attempts - 1), 0),
    twice: tasks.filter(({ claims }) => claims.length > 1).length,
    spilled: sum(({ spilled = 0 }) => spilled),
    taskMs,
    leftMs: leftMsOf({ left: tasks.length - parts.length, running, taskMs }),
  };
}

/** Only of tasks that are planned, and only from tasks that have ended: whatever else is not known yet. */
export function leftMsOf({
  left,
  running,
  taskMs,
}: {
  readonly left: number;
  readonly running: number;
  readonly taskMs?: number | undefined;
}): number | undefined {
  if (left <= 0) return 0;
  return taskMs === undefined || running === 0 ? undefined : Math.round(taskMs * Math.ceil(left / running));
}

const whyMax = 20;

function skewOf(rows: readonly number[]): number {
  const mean = rows.reduce((all, one) => all + one, 0) / Math.max(1, rows.length);
  return mean === 0 ? 1 : Math.round((Math.max(...rows) / mean) * 100) / 100;
}

export const stageText = (line: StageLine): string => {
  const { wave, about, tasks, planned, rows, bytes, cpuMs, reused, skipped, skew, spilled, again } = line;
  const count = `${planned > tasks ? `${tasks} of ${planned}` : tasks} ${planned === 1 ? "task" : "tasks"}`;
  const more = [
    ...(skew >= 1.5 && tasks > 1 ? [`skew ${skew}`] : []),
    ...(spilled > 0 ? [`${formatSize(spilled)} spilled`] : []),
    ...(again > 0 ? [`${again} more ${again === 1 ? "attempt" : "attempts"}`] : []),
    ...(skipped > 0 ? [`${skipped} rows left out`] : []),
  ];
  const facts = [`${rows} rows`, formatSize(bytes), `${cpuMs} ms of CPU`, ...more].join(", ");
  return `  wave ${wave}: ${about}: ${count}${reused > 0 ? ` (${reused} reused)` : ""}, ${facts}`;
};

/** A line for each stage that has written anything. */
export const stagesOf = (view: JobView): readonly string[] => viewBatch(view).stages.map(stageText);

/** What stays of a task's result after the job: what was asked for, how, and logs. Packs between stages are a cache. */
export function keptOf({ payload, digests }: Pick<Result, "payload" | "digests">): readonly Digest[] {
  const { isResult, plan, output } = JSON.parse(payload) as Partial<TaskResult & PlanResult>;
  if (isResult === true || plan !== undefined) return digests;
  return output === undefined ? [] : [output];
}
