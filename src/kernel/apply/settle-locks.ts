/** Decides which job or stage gets a named lock next. */
import type { Event } from "#kernel/model/event.ts";
import { isOver, lockKey, type Lock, type LockHolder } from "#kernel/ready/locks.ts";
import type { LockSpec } from "#kernel/model/model.ts";
import { cancelSoftly } from "./cancelling.ts";
import { isJobOver, isStageOver } from "./moves.ts";
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

function cancelHolder(state: State, { job, stage }: LockHolder, lock: string, nowMs: number): Event[] {
  const reason = `made way for a newer holder of ${lock}`;
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
  if (over) return [{ kind: "lock-freed", job: over.job.no, stage: over.stage?.index ?? -1, at: nowMs }];
  const next = lock.queue[0];
  if (!next || lock.holders.length >= lock.limit) return [];
  return [{ kind: "lock-granted", job: next.job.no, stage: next.stage?.index ?? -1, at: nowMs }];
}
