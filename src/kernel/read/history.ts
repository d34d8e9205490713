/**
 * Makes the rows of the history tables, which show work after it has left memory. They are taken from the state right
 * after an event was applied, written after the log, and never read by a decision.
 */
import type { AttemptRow, JobRow, StageRow, StepRow, SubmissionRow, TaskRow } from "#base/history-rows.ts";
import type { Claim, Job, Stage, Task } from "#kernel/model/entities.ts";
import type { Event, EventOf } from "#kernel/model/event.ts";
import type { State } from "#kernel/model/state.ts";
import { troubleRowsMax } from "#kernel/model/task-array.ts";

/** Collects rows; filled in place because it is called for every event. */
export type Rows = {
  readonly jobs: JobRow[];
  readonly stages: StageRow[];
  readonly tasks: TaskRow[];
  readonly attempts: AttemptRow[];
  readonly steps: StepRow[];
  submissions?: SubmissionRow[];
};

/** The key of the row that stands for all tasks of a stage: no task has an empty key. */
export const manifestKey = "";

export const noRows = (): Rows => ({ jobs: [], stages: [], tasks: [], attempts: [], steps: [] });

export function historyOf(state: State, event: Event, rows: Rows): void {
  switch (event.kind) {
    case "committed":
    case "reused":
    case "task-failed": {
      const task = state.task(event.task);
      // The results of an array are in its manifest: a row for each of a million tasks would say it again.
      if (task.array && event.kind !== "task-failed") return;
      if (task.array && task.array.failures.length >= troubleRowsMax) return;
      rows.tasks.push(taskRow(state, task, event.at));
      if (event.kind === "committed" && state.endedClaim)
        rows.attempts.push(attemptRow(state, state.endedClaim, "committed", "", event.at));
      return supersededRows(state, event.at, rows);
    }
    case "stage-reopened":
      return supersededRows(state, event.at, rows);
    case "attempt-ended": {
      const task = state.task(event.task);
      if (task.array && task.array.troubles > troubleRowsMax) return;
      if (state.endedClaim)
        rows.attempts.push(attemptRow(state, state.endedClaim, event.outcome, reasonText(event), event.at));
      if (event.next.do === "fail" || event.next.do === "cancel") rows.tasks.push(taskRow(state, task, event.at));
      return;
    }
    case "stage-planned":
    case "plan-closed":
    case "plan-waiting":
      if (state.endedClaim) rows.attempts.push(attemptRow(state, state.endedClaim, "planned", event.kind, event.at));
      return;
    case "reported":
      for (const { step, name, status } of event.steps)
        rows.steps.push({
          shard: state.shard,
          task: event.task,
          token: event.token,
          step,
          name,
          status,
          atMs: event.at,
        });
      return;
    case "stage-ended": {
      const stage = state.stage(event.job, event.stage);
      rows.stages.push(stageRow(state, stage, event.at));
      // Tasks cancelled together with their stage or job have no event of their own.
      if (stage.manifest?.digest !== undefined) rows.tasks.push(manifestRow(state, stage, event.at));
      if (stage.tasks.length > 0 && stage.done + stage.failed < stage.size)
        for (const task of stage.tasks) if (task.phase === "CANCELLED") rows.tasks.push(taskRow(state, task, event.at));
      return;
    }
    case "job-submitted":
      if (event.tracked) trackedRows(state, event, rows);
      return;
    case "lock-granted":
    case "job-cancelling": {
      const job = state.job(event.job);
      if (job.extras?.tracked) rows.jobs.push(jobRow(state, job, event.at));
      return;
    }
    case "job-ended":
      rows.jobs.push(jobRow(state, state.job(event.job), event.at));
      return;
    default:
  }
}

/** Attempts whose work was done by another attempt, or is to be done differently. */
function supersededRows(state: State, atMs: number, rows: Rows): void {
  for (const claim of state.superseded)
    if (!claim.task.array) rows.attempts.push(attemptRow(state, claim, "superseded", "", atMs));
}

const reasonText = (event: { readonly reason: string; readonly message: string }): string =>
  event.message === "" ? event.reason : `${event.reason}: ${event.message}`;

const untagged: readonly string[] = [];

/** A longer one is not kept, and the job cannot be submitted again from history. */
const requestLengthMax = 4 * 1024 * 1024;

function trackedRows(state: State, event: EventOf<"job-submitted">, rows: Rows): void {
  rows.jobs.push(jobRow(state, state.job(event.job), event.at));
  const { name, priority, payloadHash, spec, stages, lock, tags, series, cancelGraceMs, deadlineAtMs, at } = event;
  const deadlineMs = deadlineAtMs - at;
  const kept = {
    name,
    priority,
    payloadHash,
    spec,
    stages,
    deadlineMs,
    lock,
    tags,
    series: series?.name,
    cancelGraceMs,
  };
  const request = JSON.stringify(kept);
  if (request.length <= requestLengthMax)
    (rows.submissions ??= []).push({ shard: state.shard, job: event.job, request });
}

export const jobRow = (state: State, job: Job, seenAtMs: number): JobRow => ({
  shard: state.shard,
  job: job.no,
  tenant: job.tenant.name,
  door: job.door,
  name: job.name,
  phase: job.phase,
  reason: job.reason,
  priority: job.priority,
  submittedAtMs: job.submittedAtMs,
  endedAtMs: job.endedAtMs,
  seenAtMs,
  tags: job.extras ? job.extras.tags.map(({ name, value }) => `${name}=${value}`) : untagged,
  series: job.extras?.series?.name ?? "",
  number: job.extras?.series?.number ?? 0,
});

const stageRow = (state: State, stage: Stage, endedAtMs: number): StageRow => ({
  shard: state.shard,
  job: stage.job.no,
  stage: stage.index,
  name: stage.shape.name,
  phase: stage.phase,
  generation: stage.generation,
  tasks: stage.size,
  reason: stage.reason,
  startedAtMs: stage.startedAtMs,
  endedAtMs,
});

const taskRow = (state: State, task: Task, endedAtMs: number): TaskRow => ({
  shard: state.shard,
  task: task.no,
  job: task.stage.job.no,
  stage: task.stage.index,
  key: task.plan.key,
  phase: task.phase,
  generation: task.generation,
  attempts: task.attempts,
  result: (task.result ?? task.last?.result)?.payload ?? "",
  digests: (task.result ?? task.last?.result)?.digests ?? [],
  reason: task.result || !task.last ? "" : reasonText(task.last),
  queuedAtMs: task.queuedAtMs,
  endedAtMs,
});

/** All results of the stage, in one row: the manifest lists them. */
const manifestRow = (
  state: State,
  { job, index, manifest, phase, generation, startedAtMs, done, failed }: Stage,
  endedAtMs: number,
): TaskRow => ({
  shard: state.shard,
  task: manifest?.no ?? 0,
  job: job.no,
  stage: index,
  key: manifestKey,
  phase: phase === "COMPLETED" ? "SUCCEEDED" : "FAILED",
  generation,
  attempts: 0,
  result: JSON.stringify({ done, failed }),
  digests: manifest?.digest === undefined ? [] : [manifest.digest],
  reason: "",
  queuedAtMs: startedAtMs,
  endedAtMs,
});

const attemptRow = (state: State, claim: Claim, outcome: string, reason: string, endedAtMs: number): AttemptRow => ({
  shard: state.shard,
  task: claim.task.no,
  token: claim.token,
  job: claim.task.stage.job.no,
  executor: claim.executor.id,
  outcome,
  reason,
  grantedAtMs: claim.grantedAtMs,
  startedAtMs: claim.startedAtMs,
  endedAtMs,
});
