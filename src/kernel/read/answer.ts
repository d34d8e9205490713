/** Answers queries from the state alone. */
import type { OfTenant } from "#kernel/model/command.ts";
import { staleToken } from "#kernel/decide/claim.ts";
import type { Claim, Executor, Job, LastEnd, Stage, Task } from "#kernel/model/entities.ts";
import { clamp, countJobs, extrasOf, listJobs, listMax } from "./list.ts";
import type { Answer, ExecutorView, JobView, PlanInputs, Query, StageView, Stats, TaskView } from "./query.ts";
import type { Failure, Tag } from "#kernel/model/model.ts";
import type { Rejection } from "#kernel/model/rejection.ts";
import type { State } from "#kernel/model/state.ts";
import type { TaskArray } from "#kernel/model/task-array.ts";
import { visibleJob, visibleTask } from "./visible.ts";
import { checkpointView, whyOf } from "./why.ts";

export type Answered =
  | { readonly ok: true; readonly answer: Answer }
  | { readonly ok: false; readonly rejection: Rejection };

const tasksShown = 100;
const signalsShown = 20;

export function answer(state: State, query: Query, nowMs: number): Answered {
  switch (query.kind) {
    case "job":
      return withJob(state, query, (job) => viewOf(job, nowMs, query));
    case "jobs":
      return wrongFilter(state, query) ?? fine({ jobs: listJobs(state, query) });
    case "count":
      return wrongFilter(state, query) ?? fine(countJobs(state, query));
    case "task": {
      const task = visibleTask(state, query);
      if (!task) return no({ kind: "task-unknown", task: query.task });
      return fine(taskView(task, nowMs));
    }
    case "why":
      return withJob(state, query, (job) => ({ why: whyOf(state, job, nowMs, query) }));
    case "plan-inputs":
      return planInputs(state, query, nowMs);
    case "executors":
      return fine({ executors: listExecutors(state, query, nowMs) });
    case "stats":
      return fine(stats(state));
    default:
      return no({ kind: "invalid", path: "kind", why: "no such query" });
  }
}

const fine = (given: Answer): Answered => ({ ok: true, answer: given });
const no = (rejection: Rejection): Answered => ({ ok: false, rejection });

function wrongFilter({ limits }: State, { tags }: { readonly tags?: readonly Tag[] }): Answered | undefined {
  const { tagsMax: limit } = limits;
  if (!tags || tags.length <= limit) return undefined;
  return no({ kind: "limit", what: "tags", limit, got: tags.length });
}

function withJob(
  state: State,
  query: { readonly job: number; readonly tenant?: string },
  view: (job: Job) => Answer,
): Answered {
  const job = visibleJob(state, query);
  return job ? fine(view(job)) : no({ kind: "job-unknown", job: query.job });
}

function viewOf(job: Job, nowMs: number, { tasksMax, stage, tasksFrom = 0 }: Extract<Query, { kind: "job" }>): JobView {
  const limit = clamp(tasksMax ?? tasksShown, 10_000);
  if (stage === undefined) return jobView(job, nowMs, limit);
  const from = clamp(tasksFrom, Number.MAX_SAFE_INTEGER);
  const tasks = job.stages[stage]?.tasks.slice(from, from + limit) ?? [];
  return { ...jobView(job, nowMs, 0), tasks: tasks.map((task) => taskView(task, nowMs)) };
}

export function jobView(job: Job, nowMs: number, tasksMax: number): JobView {
  const tasks: TaskView[] = [];
  for (const stage of job.stages) {
    if (stage.planning && tasks.length < tasksMax) tasks.push(taskView(stage.planning, nowMs));
    for (const task of stage.tasks) {
      if (tasks.length >= tasksMax) break;
      tasks.push(taskView(task, nowMs));
    }
    for (const array of stage.arrays ?? []) {
      const shown = shownOf(array, tasksMax - tasks.length);
      for (const task of shown) tasks.push(taskView(task, nowMs));
    }
  }
  return {
    job: job.no,
    tenant: job.tenant.name,
    door: job.door,
    name: job.name,
    phase: job.phase,
    reason: job.reason,
    priority: job.priority,
    spec: job.spec,
    submittedAtMs: job.submittedAtMs,
    endedAtMs: job.endedAtMs || undefined,
    subscribers: job.audience?.subscribers.size ?? 0,
    stages: job.stages.map(stageView),
    tasks,
    ...extrasOf(job),
  };
}

/** Of a million tasks, those that people ask about: running or waiting for another attempt, and the first to fail. */
function shownOf(array: TaskArray, max: number): Task[] {
  const shown: Task[] = [];
  for (const task of array.live.values()) {
    if (shown.length >= max) break;
    if (task.claim || task.phase !== "READY") shown.push(task);
  }
  for (const { place } of array.failures) {
    if (shown.length >= max) break;
    if (array.phaseAt(place) === "FAILED") shown.push(array.view(place));
  }
  return shown;
}

const stageView = (stage: Stage): StageView => ({
  stage: stage.index,
  name: stage.shape.name,
  needs: stage.shape.needs,
  phase: stage.phase,
  reason: stage.reason,
  generation: stage.generation,
  tasks: stage.size,
  done: stage.done,
  failed: stage.failed,
  running: stage.claims,
  waitsForSignals: stage.gate?.waitsFor ?? [],
  ...(stage.gate && stage.gate.signals.length > 0 && { signals: stage.gate.signals.slice(-signalsShown) }),
  ...(stage.arrays && {
    arrays: stage.arrays.map(({ no, plan: { count, first = 0 } }) => ({ task: no, count, first })),
  }),
  ...(stage.manifest?.digest !== undefined && { manifest: stage.manifest.digest }),
});

function taskView(task: Task, nowMs: number): TaskView {
  const claims = [task.claim, task.second].filter((claim) => claim !== undefined);
  return {
    task: task.no,
    job: task.stage.job.no,
    stage: task.stage.index,
    key: task.plan.key,
    kind: task.template.kind,
    phase: task.phase,
    planning: task === task.stage.planning,
    generation: task.generation,
    attempts: task.attempts,
    claims: claims.map((claim: Claim) => ({
      token: claim.token,
      executor: claim.executor.id,
      expiresInMs: claim.expiresAtMs - nowMs,
      started: claim.startedAtMs !== 0,
    })),
    result: task.result,
    lastFailure: task.last && failureOf(task.last),
    ...(task.checkpoint && { checkpoint: checkpointView(task.checkpoint, nowMs) }),
    steps: task.steps ?? [],
    retryInMs: task.phase === "RETRY_PENDING" ? task.dueAtMs - nowMs : undefined,
  };
}

const failureOf = ({ reason, message, result }: LastEnd): Failure =>
  result ? { reason, message, result } : { reason, message };

function planInputs(state: State, query: Extract<Query, { kind: "plan-inputs" }>, nowMs: number): Answered {
  const task = visibleTask(state, query);
  if (!task || task !== task.stage.planning) return no({ kind: "task-unknown", task: query.task });
  const { claim, stage } = task;
  if (claim?.token !== query.token) return no(staleToken(task, query.token));
  const { job } = stage;
  const needs = stage.shape.needs.map((need) => job.stages[need] as Stage);
  const results: PlanInputs["results"][number][] = [];
  const limit = Math.max(1, clamp(query.limit, listMax));
  let next: PlanInputs["next"];
  for (const need of needs) {
    if (next || (query.from && need.index < query.from.stage)) continue;
    const from = query.from?.stage === need.index ? query.from.index : 0;
    for (let i = from; i < need.tasks.length; i += 1) {
      if (results.length >= limit) {
        next = { stage: need.index, index: i };
        break;
      }
      const { plan, generation, phase, result, last } = need.tasks[i] as Task;
      const failure = !result && last ? { failure: failureOf(last) } : {};
      results.push({ stage: need.index, key: plan.key, generation, phase, result, ...failure });
    }
  }
  return fine({
    ...(job.graceUntilMs > 0 && { cancelled: { reason: job.reason, forMs: job.graceUntilMs - nowMs } }),
    spec: job.spec,
    stage: stage.shape.name,
    generation: stage.generation,
    needs: needs.map(({ index, shape, phase, generation, manifest }) => ({
      stage: index,
      name: shape.name,
      phase,
      generation,
      ...(manifest?.digest !== undefined && { manifest: manifest.digest }),
    })),
    signals: stage.gate?.signals ?? [],
    results,
    next,
  });
}

const executorsMax = 10_000;

function listExecutors(state: State, { tenant }: OfTenant, nowMs: number): ExecutorView[] {
  const serving = state.executors
    .values()
    .filter((one) => tenant === undefined || one.tenant === undefined || one.tenant === tenant);
  return serving
    .take(executorsMax)
    .map((one) => executorView(one, nowMs))
    .toArray();
}

const executorView = (executor: Executor, nowMs: number): ExecutorView => ({
  executor: executor.id,
  offers: executor.offers ?? [],
  claims: executor.claims.size,
  drained: executor.drained && executor.drained.untilMs > nowMs ? executor.drained.reason : undefined,
  failures: executor.failures,
  seenAgoMs: nowMs - executor.seenAtMs,
});

const stats = (state: State): Stats => ({
  shard: state.shard,
  jobs: state.jobs.size,
  liveJobs: state.liveJobs,
  tasks: state.tasks.size,
  ready: state.ready.size,
  claims: state.claims,
  unpublished: state.outbox.size,
  tenants: state.tenants.size,
  executors: state.executors.size,
  stateBytes: state.bytes,
  nowMs: state.nowMs,
  readyWeight: state.ready.readyWeight,
});
