import { startTelling } from "./notice.ts";
import { type Job, type Stage, Task } from "#kernel/model/entities.ts";
import type { EventOf } from "#kernel/model/event.ts";
import type { LockSpec, PlanDecides } from "#kernel/model/model.ts";
import { isSpared } from "./cancelling.ts";
import { forgetTask, mergeKeyOf, openSets, openTasks, templateOf } from "./job.ts";
import { leaveLock } from "./task-lock.ts";
import {
  beforeChange,
  dropClaim,
  fileGivingUp,
  isStageOver,
  isTaskOver,
  reweigh,
  setReason,
  toReady,
  voidClaim,
  waitFor,
} from "./moves.ts";
import { endTask, queueHeldTasks } from "./end-task.ts";
import { setLast } from "./task.ts";
import type { State } from "#kernel/model/state.ts";
import { bytesOfReuse, planningBytes } from "#kernel/memory/weigh.ts";
import { must } from "#base/assert.ts";
import { endRest, forgetArray } from "./arrays.ts";
import { reviseManifest, voidManifest } from "./manifest.ts";

export function applyStageReady(state: State, event: EventOf<"stage-ready">): void {
  const stage = state.stage(event.job, event.stage);
  beforeChange(state, stage);
  stage.startedAtMs = event.at;
  if (event.planTask === undefined) return run(state, stage, event.at);
  stage.phase = "READY";
  const template = templateOf(state, must(stage.shape.planTemplate, "plan of a stage that is planned"));
  const task = new Task(event.planTask, stage, -1, { key: "plan", spec: "" }, template);
  task.generation = stage.generation;
  task.capturedIn = state.captures;
  stage.planning = task;
  stage.job.tenant.queued += 1;
  state.grow(stage.job, planningBytes);
  state.tasks.set(task.no, task);
  state.nextTask = Math.max(state.nextTask, task.no + 1);
  toReady(state, task, event.at);
}

export function applyStagePlanned(state: State, event: EventOf<"stage-planned">): void {
  const stage = state.stage(event.job, event.stage);
  beforeChange(state, stage);
  const { planning } = stage;
  if (planning) {
    beforeChange(state, planning);
    if (planning.claim) dropClaim(state, planning.claim);
    planning.resultToken = event.token;
    endTask(state, planning, "SUCCEEDED", event.at);
  }
  waitFor(state, stage, []);
  const { set, sets, decides = nothingDecided, firstTask } = event;
  if (set) state.grow(stage.job, openTasks(state, stage, set, firstTask));
  else state.grow(stage.job, openSets(state, stage, sets ?? [], decides, firstTask));
  state.nextTask = Math.max(state.nextTask, firstTask + stage.size);
  if (!decides.lock || (stage.lockState === "held" && stage.lock?.name === decides.lock.name))
    return run(state, stage, event.at);
  // It stays READY until it has the lock that its plan names.
  if (stage.lockState === "none") setLock(state, stage, decides.lock);
  state.unsettled.add(stage);
}

const nothingDecided: PlanDecides = {};

/** Once the stage has been planned. */
export function setLock(state: State, stage: Stage, lock: LockSpec | undefined): void {
  stage.lock = lock;
  reweigh(state, stage.job);
}

export function run(state: State, stage: Stage, at: number): void {
  stage.phase = "RUNNING";
  queueHeldTasks(state, stage, at);
  state.unsettled.add(stage);
}

export function applyStageEnded(state: State, event: EventOf<"stage-ended">): void {
  const stage = state.stage(event.job, event.stage);
  const { job } = stage;
  beforeChange(state, stage);
  beforeChange(state, job);
  stage.phase = event.phase;
  setReason(state, stage, event.reason);
  waitFor(state, stage, []);
  if (stage.kept) {
    stage.kept = undefined;
    reweigh(state, job);
  }
  job.stagesOpen -= 1;
  // Tasks of a stage that never ran (skipped, or cancelled while blocked) end with their stage.
  for (const task of stage.tasks)
    if (!isTaskOver(task.phase)) {
      beforeChange(state, task);
      endTask(state, task, "CANCELLED", event.at);
    }
  for (const array of stage.arrays ?? []) {
    for (const task of array.live.values()) endTask(state, task, "CANCELLED", event.at);
    endRest(state, array, "CANCELLED");
  }
  voidManifest(state, stage);
  forNeedingStages(job, stage, (next) => {
    beforeChange(state, next);
    next.waiting -= 1;
    if (next.waiting === 0) state.unsettled.add(next);
  });
  leaveLock(state, { job, stage });
  if (job.stagesOpen === 0) state.unsettled.add(job);
}

/**
 * Cancels one stage, or every stage of a job: unclaimed tasks end now, executors of claimed tasks are asked to stop.
 */
export function applyCancelling(state: State, event: EventOf<"stage-cancelling"> | EventOf<"job-cancelling">): void {
  const job = state.job(event.job);
  beforeChange(state, job);
  if (event.kind === "job-cancelling") {
    job.phase = "CANCELLING";
    setReason(state, job, event.reason);
    job.cancelled = event.phase;
    job.graceUntilMs = event.graceUntilMs ?? 0;
    if (job.graceUntilMs > 0) state.agenda.file(job, job.graceUntilMs, state.nowMs);
    unmerge(state, job);
    state.unsettled.add(job);
  }
  const isSoft = event.kind === "job-cancelling" && event.graceUntilMs !== undefined;
  const stages = event.kind === "job-cancelling" ? job.stages : [must(job.stages[event.stage], "stage to cancel")];
  for (const stage of stages) {
    // It may wait for nothing but its manifest, which a cancelled job does not need.
    if (stage.manifest?.no) state.unsettled.add(stage);
    if (isStageOver(stage) || stage.cancelled) continue;
    if (isSoft && isSpared(stage)) {
      planAgain(state, stage, event.at);
      continue;
    }
    beforeChange(state, stage);
    stage.cancelled = event.phase;
    setReason(state, stage, event.reason);
    state.unsettled.add(stage);
    if (stage.planning) cancelTask(state, stage.planning, event.at);
    for (const task of stage.tasks) cancelTask(state, task, event.at);
    for (const array of stage.arrays ?? []) {
      endRest(state, array, "CANCELLED");
      for (const task of array.live.values()) cancelTask(state, task, event.at);
    }
  }
}

/** The planner of a spared stage must know that its job was cancelled: a planner that began before is not heard. */
function planAgain(state: State, stage: Stage, at: number): void {
  const { planning } = stage;
  if (!planning || isTaskOver(planning.phase) || planning.phase === "READY") return;
  beforeChange(state, planning);
  beforeChange(state, stage);
  if (planning.claim) {
    voidClaim(state, planning.claim);
    planning.attempts -= 1;
  }
  waitFor(state, stage, []);
  toReady(state, planning, at);
}

function cancelTask(state: State, task: Task, at: number): void {
  if (isTaskOver(task.phase)) return;
  beforeChange(state, task);
  if (task.claim) {
    state.ready.dequeue(task);
    task.phase = "CANCELLING";
  } else endTask(state, task, "CANCELLED", at);
}

export function applyTaskDisplaced(state: State, event: EventOf<"task-displaced">): void {
  const task = state.task(event.task);
  beforeChange(state, task);
  setLast(state, task, {
    token: 0,
    executor: "",
    outcome: "cancelled",
    reason: "cancelled",
    message: event.reason,
    retryInMs: undefined,
    result: undefined,
  });
  cancelTask(state, task, event.at);
}

export function applyJobEnded(state: State, event: EventOf<"job-ended">): void {
  const job = state.job(event.job);
  beforeChange(state, job);
  job.phase = event.phase;
  setReason(state, job, event.reason);
  job.endedAtMs = event.at;
  state.grow(job, -bytesOfReuse(job.reuse));
  job.reuse = undefined;
  state.liveJobs -= 1;
  state.agenda.drop(job);
  if (job.outbox) fileGivingUp(state, job);
  startTelling(state, job);
  unmerge(state, job);
  leaveLock(state, { job, stage: undefined });
}

function unmerge(state: State, job: Job): void {
  if (job.mergeKey === undefined) return;
  const key = mergeKeyOf(job.tenant.name, job.door, job.mergeKey);
  if (state.merges.get(key) === job) state.merges.delete(key);
}

/**
 * A consumer's results refer to one generation of its inputs: when an input is made again, the consumer is planned
 * again (K5).
 */
export function applyStageReopened(state: State, event: EventOf<"stage-reopened">): void {
  const stage = state.stage(event.job, event.stage);
  const { job } = stage;
  beforeChange(state, stage);
  beforeChange(state, job);
  const wasOver = isStageOver(stage);
  stage.generation = event.generation;
  voidManifest(state, stage);
  if (event.phase === "RUNNING") {
    reviseManifest(state, stage);
    stage.phase = "RUNNING";
    if (wasOver) {
      job.stagesOpen += 1;
      forNeedingStages(job, stage, (next) => {
        beforeChange(state, next);
        next.waiting += 1;
      });
    }
    return;
  }
  stage.phase = "BLOCKED";
  state.unsettled.add(stage);
  if (stage.planning) {
    resetTask(state, stage.planning, event.at);
    forgetTask(state, stage.planning);
    stage.planning = undefined;
    waitFor(state, stage, []);
  }
  const kept = new Map<string, { spec: string; result: NonNullable<Task["result"]> }>();
  for (const task of stage.tasks) {
    if (task.result) kept.set(task.plan.key, { spec: task.plan.spec, result: task.result });
    resetTask(state, task, event.at);
  }
  stage.kept = kept;
  stage.planned = undefined;
  stage.pace = undefined;
  if (stage.lockState === "queued") leaveLock(state, { job, stage });
  // A lock that it holds is kept: something of it may still be running.
  if (stage.lockState === "none") stage.lock = stage.shape.lock;
  const arrays = stage.arrays ?? [];
  for (const array of arrays) {
    for (const task of array.live.values()) resetTask(state, task, event.at);
    forgetArray(state, array);
  }
  stage.arrays = undefined;
  stage.manifest = undefined;
  const planned = stage.shape.plan !== undefined;
  const old = stage.tasks;
  stage.tasks = [];
  stage.open = 0;
  stage.done = 0;
  stage.failed = 0;
  stage.active = 0;
  stage.nextHeld = 0;
  for (const task of old) forgetTask(state, task);
  if (!planned && stage.template) {
    const { template } = stage;
    const [array] = arrays;
    const set = array ? { template, array: array.plan } : { template, tasks: old.map((task) => task.plan) };
    openTasks(state, stage, set, event.firstTask);
  }
  if (!planned) state.nextTask = Math.max(state.nextTask, event.firstTask + stage.size);
  reweigh(state, job);
}

function resetTask(state: State, task: Task, at: number): void {
  beforeChange(state, task);
  if (task.second) voidClaim(state, task.second);
  if (task.claim) voidClaim(state, task.claim);
  if (!isTaskOver(task.phase)) endTask(state, task, "CANCELLED", at);
}

function forNeedingStages(job: Job, stage: Stage, visit: (next: Stage) => void): void {
  if (job.stages.length === 1) return;
  for (const next of job.stages) if (next.shape.needs.includes(stage.index)) visit(next);
}
