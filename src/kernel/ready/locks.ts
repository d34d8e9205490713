/**
 * Named locks (concurrency groups), held by a whole job or by one stage. A lock is passed on only when its holder and
 * all of the holder's claims have ended or expired: until then something of it may still be running.
 */
import type { Job, Stage, Tenant } from "#kernel/model/entities.ts";
import type { LockSpec } from "#kernel/model/model.ts";

export type LockHolder = { readonly job: Job; readonly stage: Stage | undefined };

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
};

export const createLocks = (): Locks => ({ byKey: new Map(), unsettled: new Set() });

export const lockSpecOf = (holder: LockHolder): LockSpec | undefined =>
  holder.stage ? holder.stage.lock : holder.job.lock;

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

export function isIn(list: readonly LockHolder[], job: Job, stage: Stage | undefined): boolean {
  return list.some((holder) => holder.job === job && holder.stage === stage);
}

export function removeFrom(list: LockHolder[], job: Job, stage: Stage | undefined): void {
  const at = list.findIndex((holder) => holder.job === job && holder.stage === stage);
  if (at !== -1) list.splice(at, 1);
}

/** Whether the holder has ended and nothing of it can still be running. */
export const isOver = ({ job, stage }: LockHolder): boolean =>
  stage ? isEnded(stage.phase) && stage.claims === 0 : isEnded(job.phase) && job.claims === 0;

const isEnded = (phase: string): boolean =>
  phase === "COMPLETED" || phase === "SUCCEEDED" || phase === "FAILED" || phase === "SKIPPED" || phase === "CANCELLED";
