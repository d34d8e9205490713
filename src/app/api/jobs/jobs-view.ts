/** Pure: turns a shard's view of a job into the form of /v1/jobs. */
import type { z } from "zod";
import { formatTask, parseJob } from "#base/ids.ts";
import type { ListedJob } from "#shard/client/list.ts";
import type { JobView, StageView, TaskView } from "#kernel/read/query.ts";
import { withoutOutput } from "#worker/printed/failure-output.ts";
import { showJob } from "#app/job-view.ts";
import type { JobDetails, JobSummary } from "#api/jobs.ts";

type Summary = z.input<typeof JobSummary>;
type Details = z.input<typeof JobDetails>;

const time = (ms: number): string => new Date(ms).toISOString();

export const summaryOf = (listed: ListedJob): Summary => {
  const { jobId, tenant, door, name, phase, priority, submittedAtMs, endedAtMs, tasks, done } = listed;
  return {
    job: jobId,
    tenant,
    door,
    name,
    phase: phase as Summary["phase"],
    priority,
    submittedAt: time(submittedAtMs),
    ...(endedAtMs !== undefined && { endedAt: time(endedAtMs) }),
    ...(tasks !== undefined && { tasks }),
    ...(done !== undefined && { done }),
    ...extrasOf(listed),
  };
};

const extrasOf = ({
  tags,
  series,
}: Pick<ListedJob, "tags" | "series">): Pick<Summary, "tags" | "series" | "number"> => ({
  ...(tags && { tags: Object.fromEntries(tags.map(({ name, value }) => [name, value])) }),
  ...(series && { series: series.name, number: series.number }),
});

/** `keepMs`: how long results of such jobs stay after their end. */
export function detailsOf(jobId: string, view: JobView, nowMs: number, keepMs?: number): Details {
  const { tenant, door, name, phase, priority, reason, submittedAtMs, endedAtMs, stages } = view;
  const shard = parseJob(jobId)?.shard ?? 0;
  return {
    job: jobId,
    tenant,
    door,
    name,
    phase,
    priority,
    reason,
    submittedAt: time(submittedAtMs),
    ...(endedAtMs !== undefined && { endedAt: time(endedAtMs) }),
    ...(endedAtMs !== undefined && keepMs !== undefined && { resultsUntil: time(endedAtMs + keepMs) }),
    ...extrasOf(view),
    stages: stages.map((stage) => stageOf(stage, stages)),
    tasks: view.tasks.filter(({ planning }) => !planning).map((task) => taskOf(shard, task, stages)),
    shown: [...showJob(jobId, view, nowMs)],
  };
}

function stageOf(stage: StageView, all: readonly StageView[]): Details["stages"][number] {
  const { name, needs, phase, reason, tasks, done, failed, running, waitsForSignals, manifest } = stage;
  const waits = [...waitsForSignals];
  return {
    name,
    needs: needs.map((one) => nameOf(one, all)),
    phase,
    reason,
    tasks,
    done,
    failed,
    running,
    waitsForSignals: waits,
    ...(manifest !== undefined && { manifest }),
  };
}

function taskOf(shard: number, task: TaskView, stages: readonly StageView[]): Details["tasks"][number] {
  const { key, kind, phase, attempts, claims, retryInMs, lastFailure, result, steps } = task;
  return {
    task: formatTask(shard, task.task),
    stage: nameOf(task.stage, stages),
    key,
    kind,
    phase,
    attempts,
    executors: claims.map(({ executor }) => executor),
    ...(steps.length > 0 && { steps: steps.map(({ step, name, status }) => ({ step, name, status })) }),
    ...(retryInMs !== undefined && { retryInMs }),
    ...(lastFailure && { failure: { reason: lastFailure.reason, message: withoutOutput(lastFailure.message) } }),
    ...(result && { result: result.payload }),
  };
}

export const nameOf = (stage: number, all: readonly StageView[]): string =>
  all.find((one) => one.stage === stage)?.name ?? String(stage);
