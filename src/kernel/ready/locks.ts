/**
 * Named locks (concurrency groups), held by a whole job, by one stage or by one task. A lock is passed on only when its
 * holder and all of the holder's claims have ended or expired: until then something of it may still be running.
 */
import type { Job, Stage, Task, Tenant } from "#kernel/model/entities.ts";
import type { LockSpec } from "#kernel/model/model.ts";

export type LockHolder = {
  readonly job: Job;
  readonly stage: Stage | undefined;
  /** For the lock of one task. */
  readonly task?: TaskLock | undefined;
};

/** A task that wants or has the lock of its template. "wanted": it is about to ask for it. */
export type TaskLock = {
  readonly task: Task;
  state: "wanted" | "queued" | "held";
  /** Claims whose executor may still be running the task, void ones included. */
  claims: number;
};

export type Lock = {
  readonly key: string;
  limit: number;
  readonly holders: LockHolder[];
  readonly queue: LockHolder[];
};

export type Locks = {
  readonly byKey: Map<string, Lock>;
  /** Locks with something to do: a free slot, or holders to cancel for a new request. */
  readonly unsettled: Set<Lock>;
  /** By the task's number. A task that its stage has forgotten is here until its claims are over. */
  readonly tasks: Map<number, TaskLock>;
  /** Tasks that are about to ask for their lock, in turn. */
  readonly wanting: Set<TaskLock>;
};

export const createLocks = (): Locks => ({
  byKey: new Map(),
  unsettled: new Set(),
  tasks: new Map(),
  wanting: new Set(),
});

export function lockSpecOf({ job, stage, task }: LockHolder): LockSpec | undefined {
  if (task) return task.task.template.lock;
  return stage ? stage.lock : job.lock;
}

/** Each tenant has its own locks. */
export const lockKey = (tenant: Tenant, name: string): string => `${tenant.name}\u0000${name}`;

export function lockOf(locks: Locks, tenant: Tenant, spec: LockSpec): Lock {
  const key = lockKey(tenant, spec.name);
  let lock = locks.byKey.get(key);
  if (!lock) {
    lock = { key, limit: spec.limit, holders: [], queue: [] };
    locks.byKey.set(key, lock);
  }
  return lock;
}

const isSame = (a: LockHolder, b: LockHolder): boolean =>
  a.job === b.job && a.stage === b.stage && a.task?.task.no === b.task?.task.no;

export const placeIn = (list: readonly LockHolder[], holder: LockHolder): number =>
  list.findIndex((one) => isSame(one, holder));

export function removeFrom(list: LockHolder[], holder: LockHolder): void {
  const at = placeIn(list, holder);
  if (at !== -1) list.splice(at, 1);
}

/**
 * Whether the holder has ended and nothing of it can still be running. A task that its stage holds back asks for the
 * lock again when its turn comes: if it kept the lock, the task whose turn it is could wait for it.
 */
export function isOver({ job, stage, task }: LockHolder): boolean {
  if (task) return task.claims === 0 && (isEnded(task.task.phase) || isHeldBack(task.task));
  return stage ? isEnded(stage.phase) && stage.claims === 0 : isEnded(job.phase) && job.claims === 0;
}

export const taskHolder = (lock: TaskLock): LockHolder => {
  const { stage } = lock.task;
  return { job: stage.job, stage, task: lock };
};

/** It has never been queued in this generation, though it may have the lock of the one before. */
const isHeldBack = ({ phase, order }: Task): boolean => phase === "READY" && order === 0;

const isEnded = (phase: string): boolean =>
  phase === "COMPLETED" || phase === "SUCCEEDED" || phase === "FAILED" || phase === "SKIPPED" || phase === "CANCELLED";
