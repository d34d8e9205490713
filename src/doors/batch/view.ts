/** Pure: what a batch job has come to, from the kernel's view of it. */
import type { Digest } from "#base/digest.ts";
import { formatSize } from "#base/units.ts";
import type { JobView } from "#kernel/read/query.ts";
import { commitPayload, type CommitResult, type TaskResult } from "./documents.ts";
import type { PlanResult } from "./plan-wave.ts";
import { planStage } from "./plan.ts";

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
};

export type BatchView = {
  readonly phase: JobView["phase"];
  readonly plan: Digest | undefined;
  readonly stages: readonly StageLine[];
  /** Packs of the result in order; undefined while it is not there. */
  readonly result: readonly Digest[] | undefined;
  /** Where it was written to, once it was. */
  readonly written: CommitResult["written"] | undefined;
  /** Why it did not succeed. */
  readonly failure: string | undefined;
};

export function viewBatch(view: JobView): BatchView {
  const done = view.tasks.filter(({ result, planning }) => result !== undefined && !planning);
  const planned = done.find(({ stage }) => stage === planStage)?.result;
  const commit = done.find(({ result }) => result?.payload.startsWith(commitPayload))?.result;
  const parts = done
    .filter(({ stage, result }) => stage !== planStage && result !== commit)
    .map(({ stage, result }) => ({ wave: stage, ...(JSON.parse(result?.payload ?? "{}") as TaskResult) }));
  const stages = new Map<string, (typeof parts)[number][]>();
  for (const part of parts) stages.set(part.stage, [...(stages.get(part.stage) ?? []), part]);
  const last = parts.filter(({ isResult }) => isResult).toSorted((a, b) => a.part - b.part);
  const failed = view.tasks.find(({ phase, lastFailure }) => phase === "FAILED" && lastFailure);
  return {
    phase: view.phase,
    plan: planned && (JSON.parse(planned.payload) as PlanResult).plan,
    stages: [...stages.entries()].map(([id, all]) => lineOf(id, all)),
    result: view.phase === "SUCCEEDED" && last.length > 0 ? last.map(({ pack }) => pack) : undefined,
    written: commit && (JSON.parse(commit.payload) as CommitResult).written,
    failure: failed?.lastFailure?.message ?? view.stages.find(({ phase }) => phase === "FAILED")?.reason,
  };
}

function lineOf(id: string, parts: readonly (TaskResult & { readonly wave: number })[]): StageLine {
  const sum = (of: (part: TaskResult) => number): number => parts.reduce((all, part) => all + of(part), 0);
  const [first] = parts;
  return {
    wave: first?.wave ?? 0,
    about: first?.about ?? "",
    id,
    tasks: parts.length,
    rows: sum(({ rows }) => rows),
    bytes: sum(({ bytes }) => bytes),
    cpuMs: sum(({ cpuMs, reused }) => (reused ? 0 : cpuMs)),
    reused: parts.filter(({ reused }) => reused).length,
    skipped: sum(({ skipped = 0 }) => skipped),
    why: [...new Set(parts.flatMap(({ why }) => (why === undefined ? [] : [why])))].slice(0, whyMax),
    skew: skewOf(parts.map(({ rows }) => rows)),
  };
}

const whyMax = 20;

function skewOf(rows: readonly number[]): number {
  const mean = rows.reduce((all, one) => all + one, 0) / Math.max(1, rows.length);
  return mean === 0 ? 1 : Math.round((Math.max(...rows) / mean) * 100) / 100;
}

export const stageText = ({ wave, about, tasks, rows, bytes, cpuMs, reused, skipped }: StageLine): string => {
  const count = `${tasks} ${tasks === 1 ? "task" : "tasks"}${reused > 0 ? ` (${reused} reused)` : ""}`;
  return `  wave ${wave}: ${about}: ${count}, ${rows} rows, ${formatSize(bytes)}, ${cpuMs} ms of CPU${skipped > 0 ? `, ${skipped} rows left out` : ""}`;
};

/** A line for each stage that has written anything. */
export const stagesOf = (view: JobView): readonly string[] => viewBatch(view).stages.map(stageText);
