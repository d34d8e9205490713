/**
 * The small state changes that events consist of. Each one updates every count and index that it affects, so that
 * `apply` reads as a list of what happened and nothing is found by scanning.
 */
import { assert } from "#base/assert.ts";
import type { Claim, Gate, Job, Slice, Stage, Task, Tenant } from "#kernel/model/entities.ts";
import { lockOf, type LockHolder, lockSpecOf, taskHolder } from "#kernel/ready/locks.ts";
import type { TaskPhase } from "#kernel/model/model.ts";
import type { State } from "#kernel/model/state.ts";
import type { EndsPage } from "#kernel/model/task-array.ts";
import { bytesOfCheckpoint, bytesOfJob, bytesOfNames, bytesOfText, claimBytes } from "#kernel/memory/weigh.ts";

export const isTaskOver = (phase: TaskPhase): boolean =>
  phase === "SUCCEEDED" || phase === "FAILED" || phase === "CANCELLED";

export const isStageOver = (stage: Stage): boolean =>
  stage.phase === "COMPLETED" || stage.phase === "FAILED" || stage.phase === "SKIPPED" || stage.phase === "CANCELLED";

export const isJobOver = (job: Job): boolean =>
  job.phase === "SUCCEEDED" || job.phase === "FAILED" || job.phase === "CANCELLED";

/** How many live claims the tenant may have in this shard now. */
export function slotsOf(state: State, tenant: Tenant): number {
  if (tenant.runningMax === 0) return Number.POSITIVE_INFINITY;
  if (tenant.home !== state.shard) return tenant.slice.untilMs > state.nowMs ? tenant.slice.slots : 0;
  return tenant.runningMax - lentBy(state, tenant);
}

export function lentBy(state: State, tenant: Tenant, except?: number): number {
  let lent = 0;
  for (const [borrower, slices] of tenant.lent) if (borrower !== except) lent += lentNow(slices, state.nowMs);
  return lent;
}

export const lentNow = (slices: readonly Slice[], nowMs: number): number =>
  Math.max(0, ...slices.filter(({ untilMs }) => untilMs > nowMs).map(({ slots }) => slots));

/** Takes a tenant without a free slot out of the ready queues until a slot is free again. */
export function checkQuota(state: State, tenant: Tenant): void {
  state.ready.park(tenant, tenant.running >= slotsOf(state, tenant));
}

/** Copy-on-write: a snapshot in progress saves the thing as it was when the snapshot began. */
export function beforeChange(state: State, thing: Task | Stage | Job | EndsPage): void {
  state.capture?.keep(thing);
}

/** Recomputes the job's memory estimate from scratch, after a change to most of the job. */
export function reweigh(state: State, job: Job): void {
  state.grow(job, bytesOfJob(job) - job.bytes);
}

export function setReason(state: State, thing: Job | Stage, reason: string): void {
  const job = "job" in thing ? thing.job : thing;
  state.grow(job, bytesOfText(reason) - bytesOfText(thing.reason));
  thing.reason = reason;
}

export const gateOf = (stage: Stage): Gate => (stage.gate ??= { signals: [], seen: 0, waitsFor: [] });

/** Sets the signals that the stage's planner waits for; most planners wait for none. */
export function waitFor(state: State, stage: Stage, names: readonly string[]): void {
  if (!stage.gate && names.length === 0) return;
  const gate = gateOf(stage);
  state.grow(stage.job, bytesOfNames(names) - bytesOfNames(gate.waitsFor));
  gate.waitsFor = names;
}

/** Puts a task into its ready queue, or back into it. */
export function toReady(state: State, task: Task, atMs: number): void {
  task.phase = "READY";
  task.queuedAtMs = atMs;
  task.dueAtMs = 0;
  state.ready.enqueue(task);
  state.agenda.drop(task);
  fileQueued(state, task);
}

/** Files the task's queue deadline in the agenda, unless the job's deadline comes first and covers it. */
export function fileQueued(state: State, task: Task): void {
  const dueAtMs = Math.min(task.queuedAtMs + task.template.queueMs, planEndsAtMs(task));
  if (dueAtMs < task.stage.job.deadlineAtMs) state.agenda.file(task, dueAtMs, state.nowMs);
}

export function toTimed(state: State, task: Task, phase: "RETRY_PENDING" | "WAITING", dueAtMs: number): void {
  task.phase = phase;
  task.dueAtMs = dueAtMs;
  state.agenda.drop(task);
  fileTimed(state, task);
}

export function fileTimed(state: State, task: Task): void {
  state.agenda.file(task, Math.min(task.dueAtMs, planEndsAtMs(task)), state.nowMs);
}

/** K9: planning has this much time from when its stage became ready, including time spent waiting for signals. */
export const planEndsAtMs = (task: Task): number =>
  task === task.stage.planning ? task.stage.startedAtMs + task.template.queueMs : Number.POSITIVE_INFINITY;

export function setCheckpoint(state: State, task: Task, checkpoint: Task["checkpoint"]): void {
  state.grow(task.stage.job, bytesOfCheckpoint(checkpoint) - bytesOfCheckpoint(task.checkpoint));
  task.checkpoint = checkpoint;
}

/** Removes the claim: its executor has stopped working on it, or its lease is over. */
export function dropClaim(state: State, claim: Claim): void {
  const { task } = claim;
  if (!claim.void) silence(state, claim);
  claim.executor.claims.delete(claim.token);
  state.agenda.drop(claim);
  state.claims -= 1;
  task.stage.claims -= 1;
  task.stage.job.claims -= 1;
  state.grow(task.stage.job, -claimBytes);
  state.endedClaim = claim;
  const { stage } = task;
  if (state.locks.tasks.size > 0) taskLockMayBeFree(state, task);
  if (stage.claims === 0 && stage.lockState === "held") {
    lockMayBeFree(state, { job: stage.job, stage });
    // It was planned again, with another lock: that one waits until this one is free.
    if (stage.planned) state.unsettled.add(stage);
  }
  if (stage.job.claims === 0 && stage.job.lock) lockMayBeFree(state, { job: stage.job, stage: undefined });
}

function taskLockMayBeFree(state: State, { no }: Task): void {
  const lock = state.locks.tasks.get(no);
  if (!lock) return;
  lock.claims -= 1;
  if (lock.claims === 0 && lock.state === "held") lockMayBeFree(state, taskHolder(lock));
}

/** Makes the claim void: its token is no longer accepted, though its executor may still be running the attempt. */
export function voidClaim(state: State, claim: Claim): void {
  assert(!claim.void, "a claim becomes void only once");
  silence(state, claim);
  claim.void = true;
  state.superseded.push(claim);
  state.endedClaim = claim;
}

function silence(state: State, claim: Claim): void {
  const { task } = claim;
  const { tenant } = task.stage.job;
  beforeChange(state, task);
  if (task.claim === claim) {
    task.claim = task.second;
    task.second = undefined;
  } else if (task.second === claim) task.second = undefined;
  if (!task.claim) tenant.queued += 1;
  tenant.running -= 1;
  state.ready.freed(tenant);
  checkQuota(state, tenant);
}

/** When a job that has ended stops trying to publish its results. */
export const giveUpAtMsOf = (state: State, job: Job): number => job.endedAtMs + state.limits.publishMsMax;

export function fileGivingUp(state: State, job: Job): void {
  state.agenda.file(job, giveUpAtMsOf(state, job), state.nowMs);
}

export function lockMayBeFree(state: State, holder: LockHolder): void {
  const spec = lockSpecOf(holder);
  if (spec) state.locks.unsettled.add(lockOf(state.locks, holder.job.tenant, spec));
}

/** When the attempt reaches its time limit. Renewals cannot extend the lease that it holds at that moment. */
/**
 * The longest run of one attempt at planning: a planner that is stuck is replaced. Waiting for a signal is no attempt.
 */
export const planAttemptMsMax = 5 * 60_000;

export const attemptMsOf = (task: Task): number =>
  task === task.stage.planning ? Math.min(task.template.attemptMs, planAttemptMsMax) : task.template.attemptMs;

export const limitAtMsOf = (claim: Claim): number =>
  Math.min(
    (claim.startedAtMs || claim.grantedAtMs) + attemptMsOf(claim.task) + claim.sleptMs,
    planEndsAtMs(claim.task),
  );

/**
 * Files the claim under the earliest time at which it may need action: end of lease, time limit, or the check for
 * stragglers.
 */
export function fileClaim(state: State, claim: Claim): void {
  const { template } = claim.task;
  let dueAtMs = claim.void ? claim.expiresAtMs : Math.min(claim.expiresAtMs, limitAtMsOf(claim));
  if (template.speculate && !claim.task.speculated && !claim.void)
    dueAtMs = Math.min(dueAtMs, state.nowMs + lagCheckMs);
  state.agenda.file(claim, dueAtMs, state.nowMs);
}

const lagCheckMs = 1_000;
