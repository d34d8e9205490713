import { assert, missing } from "#base/assert.ts";
import { Claim, type LastEnd, type Task } from "#kernel/model/entities.ts";
import type { AttemptOutcome, EventOf } from "#kernel/model/event.ts";
import type { FailReason, Result } from "#kernel/model/model.ts";
import { dropFromOutbox, toOutbox } from "./publish.ts";
import { beforeChange, checkQuota, dropClaim, fileClaim, setCheckpoint, toReady, toTimed, voidClaim } from "./moves.ts";
import { lockMayBeFree, waitFor } from "./moves.ts";
import { endTask, notSpeculated, queueHeldTasks } from "./end-task.ts";
import type { State } from "#kernel/model/state.ts";
import { parallelMaxOf } from "#kernel/model/stage-rules.ts";
import { addRun, newPace } from "#kernel/model/pace.ts";
import {
  bytesOfFailures,
  bytesOfLast,
  bytesOfOldResult,
  bytesOfResult,
  bytesOfStep,
  claimBytes,
} from "#kernel/memory/weigh.ts";
import { taskHolder } from "#kernel/ready/locks.ts";
import { queueTask } from "./task-lock.ts";
import { bearUntil, endRest, queuedTask, revive } from "./arrays.ts";
import { hasManifest, voidManifest } from "./manifest.ts";

export function applyClaimed(state: State, event: EventOf<"claimed">): void {
  const task = queuedTask(state, event.task, event.at);
  const { stage } = task;
  const { tenant } = stage.job;
  const executor = state.executor(event.executor);
  beforeChange(state, task);
  assert(task.second === undefined, "a task has at most two live attempts (K2)");
  const claim = new Claim(task, event.token, executor, event.leaseMs, event.at);
  state.ready.dequeue(task);
  state.agenda.drop(task);
  if (task.claim) task.second = claim;
  else {
    task.claim = claim;
    tenant.queued -= 1;
    task.phase = event.started ? "RUNNING" : "CLAIMED";
  }
  if (event.started) claim.startedAtMs = event.at;
  if (task === stage.planning && stage.gate) {
    beforeChange(state, stage);
    stage.gate.seen = stage.gate.signals.length;
  }
  task.attempts += 1;
  // A repeated nonce means the same request only while a claim of its last answer is still live.
  if (executor.nonce !== event.nonce || !executor.claims.has(executor.granted.at(-1) ?? 0)) {
    executor.nonce = event.nonce;
    executor.granted = [];
  }
  executor.granted.push(claim.token);
  executor.claims.set(claim.token, claim);
  tenant.running += 1;
  stage.claims += 1;
  stage.job.claims += 1;
  const lock = task.template.lock && state.locks.tasks.get(task.no);
  if (lock) lock.claims += 1;
  state.grow(stage.job, claimBytes);
  state.claims += 1;
  state.ready.serve(tenant);
  checkQuota(state, tenant);
  fileClaim(state, claim);
  if (task.array) queueHeldTasks(state, stage, event.at);
  state.nextToken = Math.max(state.nextToken, event.token + 1);
}

export function applyStarted(state: State, event: EventOf<"started">): void {
  const task = state.task(event.task);
  beforeChange(state, task);
  const claim = claimOf(task, event.token);
  claim.startedAtMs = event.at;
  // A start shows that the executor is alive, and the grant may have been delayed on its way: renew the lease in full
  // from now.
  claim.expiresAtMs = Math.max(claim.expiresAtMs, event.at + claim.leaseMs);
  if (task.phase === "CLAIMED") task.phase = "RUNNING";
}

export function applyReported(state: State, event: EventOf<"reported">): void {
  const task = state.task(event.task);
  beforeChange(state, task);
  const steps = (task.steps ??= []);
  for (const step of event.steps) {
    const at = steps.findLastIndex((known) => known.step === step.step);
    const before = steps[at];
    state.grow(task.stage.job, bytesOfStep(step) - (before ? bytesOfStep(before) : 0));
    if (before) steps[at] = step;
    else steps.push(step);
  }
}

export function applyCommitted(state: State, event: EventOf<"committed">): void {
  const task = state.task(event.task);
  const { stage } = task;
  const claim = claimOf(task, event.token);
  beforeChange(state, task);
  setResult(state, task, event.result);
  task.resultToken = event.token;
  if (event.result.publish !== undefined) {
    // A task of an array leaves memory when it ends: then its job's row in a snapshot lists the publication.
    if (task.array) beforeChange(state, stage.job);
    toOutbox(state, task, event.at);
  }
  const tookMs = event.at - (claim.startedAtMs || claim.grantedAtMs);
  stage.runMsSum += tookMs;
  stage.runs += 1;
  if (task.template.speculation) addRun((stage.pace ??= newPace()), tookMs);
  claim.executor.failures = 0;
  const other = task.claim === claim ? task.second : task.claim;
  if (other) voidClaim(state, other);
  dropClaim(state, claim);
  endTask(state, task, "SUCCEEDED", event.at);
}

export function applyReused(state: State, event: EventOf<"reused">): void {
  const task = state.task(event.task);
  beforeChange(state, task);
  setResult(state, task, event.result);
  task.resultToken = 0;
  state.endedClaim = undefined;
  endTask(state, task, "SUCCEEDED", event.at);
}

function setResult(state: State, task: Task, result: Result | undefined): void {
  state.grow(task.stage.job, bytesOfResult(result) - bytesOfResult(task.result));
  task.result = result;
}

export function setLast(state: State, task: Task, last: LastEnd): void {
  state.grow(task.stage.job, bytesOfLast(last) - bytesOfLast(task.last));
  task.last = last;
}

export function applyAttemptEnded(state: State, event: EventOf<"attempt-ended">): void {
  const task = state.task(event.task);
  const claim = claimOf(task, event.token);
  beforeChange(state, task);
  setLast(state, task, {
    token: event.token,
    executor: claim.executor.id,
    outcome: event.outcome,
    reason: event.reason,
    message: event.message,
    retryInMs: event.next.do === "retry" ? event.next.atMs - event.at : undefined,
    result: event.result,
  });
  if (task.array) task.array.troubles += 1;
  if (blamesExecutor(event)) claim.executor.failures += 1;
  if (event.outcome === "released") task.attempts -= 1;
  if (ranOutOfMemory(event)) task.outOfMemory += 1;
  if (hasFailed(event)) countFailure(state, task, event.reason);
  // An attempt that timed out may still be running: its token is void, but locks wait until it has stopped.
  if (event.outcome === "timed-out") voidClaim(state, claim);
  else dropClaim(state, claim);
  if (event.next.do === "nothing") return;
  state.ready.dequeue(task);
  notSpeculated(task);
  if (event.next.do === "ready") toReady(state, task, event.at);
  else if (event.next.do === "retry") toTimed(state, task, "RETRY_PENDING", event.next.atMs);
  else endTask(state, task, event.next.do === "fail" ? "FAILED" : "CANCELLED", event.at);
}

const hasFailed = ({ outcome }: { readonly outcome: AttemptOutcome }): boolean =>
  outcome === "failed" || outcome === "expired" || outcome === "timed-out";

function countFailure(state: State, task: Task, reason: FailReason): void {
  const { failures } = task;
  task.failures = { ...failures, [reason]: (failures?.[reason] ?? 0) + 1 };
  state.grow(task.stage.job, bytesOfFailures(task.failures) - bytesOfFailures(failures));
}

/** Failures that point to a broken executor rather than to the work. */
export const blamesExecutor = (event: { readonly reason: string; readonly outcome: string }): boolean =>
  event.reason === "executor-lost" || event.reason === "out-of-memory";

/** False if the attempt was being cancelled: then its memory use has no consequences. */
export const ranOutOfMemory = (end: { readonly reason: FailReason; readonly outcome: AttemptOutcome }): boolean =>
  end.outcome === "failed" && end.reason === "out-of-memory";

export function applyCheckpointed(state: State, event: EventOf<"checkpointed">): void {
  const task = state.task(event.task);
  beforeChange(state, task);
  const { payload, digests } = event.checkpoint;
  setCheckpoint(state, task, { payload, digests, token: event.token, atMs: event.at });
}

export function applyClaimGone(state: State, event: EventOf<"claim-gone">): void {
  const claim = state.executors.get(event.executor)?.claims.get(event.token);
  if (claim) dropClaim(state, claim);
}

/** The owner that logged this may have queued fewer tasks ahead, or more: what the event says counts. */
export function applyRestFailed(state: State, event: EventOf<"rest-failed">): void {
  const array = state.arrayOf(event.array) ?? missing(`array ${event.array}`);
  bearUntil(state, array, event.from, event.at);
  endRest(state, array, "FAILED", event.reason);
  for (const task of array.live.values())
    if (task.index >= event.from) applyTaskFailed(state, { ...event, kind: "task-failed", task: task.no });
}

export function applyTaskFailed(state: State, event: EventOf<"task-failed">): void {
  const task = queuedTask(state, event.task, event.at);
  beforeChange(state, task);
  setLast(state, task, {
    token: 0,
    executor: "",
    outcome: "failed",
    reason: "timed-out",
    message: event.reason,
    retryInMs: undefined,
    result: undefined,
  });
  endTask(state, task, "FAILED", event.at);
}

export function applyPlanClosed(state: State, event: EventOf<"plan-closed">): void {
  const task = state.task(event.task);
  beforeChange(state, task);
  beforeChange(state, task.stage);
  if (task.claim) dropClaim(state, task.claim);
  task.resultToken = event.token;
  waitFor(state, task.stage, []);
  endTask(state, task, "SUCCEEDED", event.at);
}

export function applyInvalidated(state: State, event: EventOf<"invalidated">): void {
  const task = revive(state, event.task);
  const { stage } = task;
  beforeChange(state, task);
  beforeChange(state, stage);
  dropFromOutbox(state, task);
  voidManifest(state, stage);
  task.generation = event.generation;
  if (!hasManifest(stage)) keepResult(state, task);
  setResult(state, task, undefined);
  task.resultToken = 0;
  task.attempts = 0;
  task.outOfMemory = 0;
  state.grow(stage.job, -bytesOfFailures(task.failures));
  task.failures = undefined;
  task.speculated = false;
  stage.open += 1;
  stage.done -= 1;
  stage.job.tenant.queued += 1;
  const parallelMax = parallelMaxOf(stage);
  if (parallelMax === 0 || stage.active < parallelMax) {
    stage.active += 1;
    return queueTask(state, task, event.at);
  }
  // parallelMax is reached: the task is held again, ahead of the tasks that have not been queued yet.
  task.phase = "READY";
  task.order = 0;
  const lock = task.template.lock && state.locks.tasks.get(task.no);
  if (lock) lockMayBeFree(state, taskHolder(lock));
  if (task.array) task.array.held.push(task.index);
  else stage.nextHeld = Math.min(stage.nextHeld, task.index);
}

/** Stages that run on compare it with the one that replaces it. */
function keepResult(state: State, { stage, plan: { key, spec }, result }: Task): void {
  if (!result) return;
  const kept = (stage.kept ??= new Map());
  const before = kept.get(key);
  kept.set(key, { spec, result });
  state.grow(stage.job, bytesOfOldResult(key, { spec, result }) - (before ? bytesOfOldResult(key, before) : 0));
}

function claimOf(task: Task, token: number): Claim {
  const claim = task.claim?.token === token ? task.claim : task.second;
  return claim?.token === token ? claim : missing(`claim ${token} of task ${task.no}`);
}
