/** Presents a job that has left memory in the types of a live one. */
import type { Digest } from "#base/digest.ts";
import type { JobPhase, StagePhase, Step, Tag, TaskPhase } from "#kernel/model/model.ts";
import type { JobView, StageView, TaskView } from "#kernel/read/query.ts";
import type { StageRow, TaskRow } from "#base/history-rows.ts";
import { manifestKey } from "#kernel/read/history.ts";
import type { JobHistory } from "#journal/journal.ts";

export function viewOfHistory(history: JobHistory): JobView {
  const { job } = history;
  return {
    job: job.job,
    tenant: job.tenant,
    door: job.door,
    name: job.name,
    phase: job.phase as JobPhase,
    reason: job.reason,
    priority: job.priority,
    spec: "",
    submittedAtMs: job.submittedAtMs,
    endedAtMs: job.endedAtMs || undefined,
    subscribers: 0,
    stages: history.stages.map((stage) => stageView(stage, history.tasks)),
    tasks: history.tasks.filter(({ key }) => key !== manifestKey).map((task) => taskView(task, history)),
    ...(job.tags.length > 0 && { tags: job.tags.map(tagOf) }),
    ...(job.number > 0 && { series: { name: job.series, number: job.number } }),
  };
}

/** From `name=value`, as history keeps it. */
export function tagOf(text: string): Tag {
  const at = text.indexOf("=");
  return { name: text.slice(0, at), value: text.slice(at + 1) };
}

export const manifestIn = (history: JobHistory | undefined, stage: number, generation: number): Digest | undefined =>
  history?.tasks.find((row) => row.key === manifestKey && row.stage === stage && row.generation === generation)
    ?.digests[0];

/** The row of a manifest stands for all tasks of its stage, and counts them. */
const countsOf = (manifest: TaskRow | undefined): { readonly done: number; readonly failed: number } | undefined =>
  manifest && (JSON.parse(manifest.result) as { done: number; failed: number });

function stageView(stage: StageRow, tasks: readonly TaskRow[]): StageView {
  const own = tasks.filter((task) => task.stage === stage.stage);
  const manifest = own.findLast(({ key }) => key === manifestKey);
  return {
    stage: stage.stage,
    name: stage.name,
    needs: [],
    phase: stage.phase as StagePhase,
    reason: stage.reason,
    generation: stage.generation,
    tasks: stage.tasks,
    ...(countsOf(manifest) ?? {
      done: own.filter(({ phase }) => phase === "SUCCEEDED").length,
      failed: own.filter(({ phase }) => phase === "FAILED").length,
    }),
    running: 0,
    waitsForSignals: [],
    ...(manifest?.digests[0] !== undefined && { manifest: manifest.digests[0] }),
  };
}

function taskView(task: TaskRow, { attempts, steps }: JobHistory): TaskView {
  const last = attempts.findLast((attempt) => attempt.task === task.task);
  const succeeded = task.phase === "SUCCEEDED";
  return {
    task: task.task,
    job: task.job,
    stage: task.stage,
    key: task.key,
    kind: "",
    phase: task.phase as TaskPhase,
    planning: false,
    generation: task.generation,
    attempts: task.attempts,
    claims: [],
    result: succeeded ? { payload: task.result, digests: task.digests } : undefined,
    lastFailure:
      succeeded || !task.reason ? undefined : { reason: "user-failure", message: last?.reason || task.reason },
    steps: steps
      .filter((step) => step.task === task.task && step.token === last?.token)
      .map(({ step, name, status }) => ({ step, name, status: status as Step["status"] })),
    retryInMs: undefined,
  };
}
