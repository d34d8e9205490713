/** Decides which job or stage gets a named lock next. */
import { missing } from "#base/assert.ts";
import type { Event, LockUser } from "#kernel/model/event.ts";
import { isOver, lockKey, taskHolder, type Lock, type LockHolder, type TaskLock } from "#kernel/ready/locks.ts";
import type { LockSpec } from "#kernel/model/model.ts";
import { cancelSoftly } from "./cancelling.ts";
import { isJobOver, isStageOver, isTaskOver } from "./moves.ts";
import type { State } from "#kernel/model/state.ts";

/**
 * What a new lock request displaces: the oldest waiting requests beyond `queueMax`, and with `cancelInProgress` the
 * holders.
 */
export function displacements(state: State, tenantName: string, spec: LockSpec, nowMs: number): Event[] {
  const tenant = state.tenants.get(tenantName);
  const lock = tenant && state.locks.byKey.get(lockKey(tenant, spec.name));
  if (!lock) return [];
  const free = Math.max(0, spec.limit - lock.holders.filter((holder) => !isOver(holder)).length);
  const tooMany = lock.queue.length + 1 - free - spec.queueMax;
  const gone = lock.queue.slice(0, Math.max(0, tooMany));
  if (spec.cancelInProgress && free === 0) gone.push(...lock.holders);
  return gone.flatMap((holder) => cancelHolder(state, holder, spec.name, nowMs));
}

function cancelHolder(state: State, { job, stage, task }: LockHolder, lock: string, nowMs: number): Event[] {
  const reason = `made way for a newer holder of ${lock}`;
  if (task) {
    const { no, phase } = task.task;
    if (isTaskOver(phase) || phase === "CANCELLING") return [];
    return [{ kind: "task-displaced", task: no, reason, at: nowMs }];
  }
  if (stage) {
    if (isStageOver(stage) || stage.cancelled || job.cancelled) return [];
    return [{ kind: "stage-cancelling", job: job.no, stage: stage.index, phase: "CANCELLED", reason, at: nowMs }];
  }
  if (isJobOver(job) || job.cancelled) return [];
  return [cancelSoftly(state, job, { phase: "CANCELLED", reason }, nowMs)];
}

/** One step of passing the lock on; called again until it returns no events. */
export function settleLock(lock: Lock, nowMs: number): Event[] {
  const over = lock.holders.find(isOver);
  if (over) return [{ kind: "lock-freed", ...userOf(over), at: nowMs }];
  const next = lock.queue[0];
  if (!next || lock.holders.length >= lock.limit) return [];
  return [{ kind: "lock-granted", ...userOf(next), at: nowMs }];
}

const userOf = ({ job, stage, task }: LockHolder): LockUser =>
  task ? { job: job.no, stage: stage?.index ?? -1, task: task.task.no } : { job: job.no, stage: stage?.index ?? -1 };

/** A task that is to be queued asks for its lock first. */
export function settleWanting(state: State, wanted: TaskLock, nowMs: number): Event[] {
  const { template, stage } = wanted.task;
  const lock = template.lock ?? missing("the lock that a task wants");
  return [
    { kind: "lock-queued", ...userOf(taskHolder(wanted)), at: nowMs },
    ...displacements(state, stage.job.tenant.name, lock, nowMs),
  ];
}
