/** Checks for free memory: refuses new work before the shard is in trouble. */
import type { Submit } from "#kernel/model/command.ts";
import type { Job, Task } from "#kernel/model/entities.ts";
import type { Limits } from "#kernel/model/limits.ts";
import type { Plan, Result, StageSpec, TaskSet } from "#kernel/model/model.ts";
import type { Rejection } from "#kernel/model/rejection.ts";
import type { State } from "#kernel/model/state.ts";
import {
  bytesOfArrayAlone,
  bytesOfJobAlone,
  bytesOfNotices,
  bytesOfPlans,
  bytesOfResult,
  bytesOfShape,
  bytesOfSubscriber,
  bytesOfTags,
  bytesOfTaskLocks,
  bytesOfTemplate,
} from "./weigh.ts";
import { setsOf, sizeOf } from "#kernel/model/task-set.ts";

export function noMemoryForJob(state: State, submit: Submit): Rejection | undefined {
  const { limits, memory } = state;
  const { retryAfterMs } = limits;
  let tasks = 0;
  for (const stage of submit.stages) tasks += stage.tasks ? queuedAtOnce(stage.tasks, limits) : 1;
  const tenant = state.tenants.get(submit.tenant);
  const queuedMax = tenant?.queuedMax || limits.queuedMax;
  if (queuedMax > 0 && (tenant?.queued ?? 0) + tasks > queuedMax)
    return { kind: "queue-full", tenant: submit.tenant, queuedMax, retryAfterMs };
  if (!tenant && state.tenants.size >= limits.tenantsMax) return { kind: "shard-full", what: "tenants", retryAfterMs };
  if (state.jobs.size >= limits.jobsMax) return { kind: "shard-full", what: "jobs", retryAfterMs };
  if (state.telling.size >= limits.unpublishedMax) return { kind: "shard-full", what: "ends to be told", retryAfterMs };
  if (state.outbox.size >= limits.unpublishedMax)
    return { kind: "shard-full", what: "unpublished results", retryAfterMs };
  if (state.tasks.size + tasks > limits.tasksMax) return { kind: "shard-full", what: "tasks", retryAfterMs };
  const bytes = bytesOfSubmit(submit);
  if (bytes > memory.jobBytesMax)
    return { kind: "limit", what: "memory of a job", limit: memory.jobBytesMax, got: bytes };
  if (!memory.fits(submit.tenant, bytes, "new")) return outOfMemory(state, submit.tenant);
  if (limits.tenantBytesMax > 0 && memory.heldBy(submit.tenant) + bytes > limits.tenantBytesMax)
    return outOfMemory(state, submit.tenant);
  // A tenant may have at most as many classes as are left for all others.
  if ((tenant?.queues.size ?? 0) >= limits.classesMax - state.ready.classes && submit.stages.some(isNewClassIn(state)))
    return { kind: "shard-full", what: "requirement classes", retryAfterMs };
  return undefined;
}

/** Whether an accepted job may grow: `new` if a caller adds to it, `due` if its own work does. */
export function noMemoryForMore(state: State, job: Job, bytes: number, kind: "new" | "due"): Rejection | undefined {
  return state.memory.fits(job.tenant.name, bytes, kind) ? undefined : outOfMemory(state, job.tenant.name);
}

/** A template, and what the plan may decide besides. */
const setBytes = 200;

export function noMemoryForPlan(state: State, job: Job, plan: Plan): Rejection | undefined {
  if (plan.kind !== "tasks") return undefined;
  const sets = setsOf(plan);
  const { tasksMax, classesMax, retryAfterMs } = state.limits;
  let tasks = 0;
  for (const set of sets) tasks += queuedAtOnce(set, state.limits);
  if (state.tasks.size + tasks > tasksMax) return { kind: "shard-full", what: "tasks", retryAfterMs };
  if (sets.length > 1) {
    const isNew = ({ template }: TaskSet): boolean =>
      !state.ready.hasClass({ requires: template.requires, planning: false });
    const classes = new Set(sets.filter(isNew).map(({ template }) => template.requires.join("\u0000"))).size;
    if (classes > 0 && job.tenant.queues.size + classes > classesMax - state.ready.classes)
      return { kind: "shard-full", what: "requirement classes", retryAfterMs };
  }
  let bytes = 0;
  for (const set of sets) bytes += setBytes + bytesOfSet(set);
  return noMemoryForMore(state, job, bytes, "due");
}

/** An array counts by the tasks that are queued ahead: the others cost nothing (ADR 0070). */
const queuedAtOnce = (set: TaskSet, { arrayAheadMax }: Limits): number =>
  set.array ? Math.min(set.array.count, arrayAheadMax) : sizeOf(set);

const bytesOfSet = (set: TaskSet): number =>
  bytesOfTemplate(set.template) +
  (set.array
    ? bytesOfArrayAlone(set.array)
    : bytesOfPlans(set.tasks) + bytesOfTaskLocks(set.template, set.tasks.length));

/**
 * A small result is always accepted: its task's memory becomes free, and if no result were accepted, no job would end
 * and no memory would become free.
 */
const smallResultBytes = 1_024;

export function noMemoryForResult(state: State, job: Job, result: Result): Rejection | undefined {
  const bytes = bytesOfResult(result);
  return bytes <= smallResultBytes ? undefined : noMemoryForMore(state, job, bytes, "due");
}

/** Whether the job, with this result, uses more memory than one job may. */
export function outgrows(state: State, task: Task, result: Result): boolean {
  const bytes = bytesOfResult(result);
  const { job } = task.stage;
  // A small result frees the memory of its task, but the tasks of an array have almost none.
  return (bytes > smallResultBytes || task.array !== undefined) && job.bytes + bytes > 2 * state.memory.jobBytesMax;
}

const isNewClassIn =
  ({ ready }: State) =>
  ({ tasks, plan }: StageSpec): boolean =>
    !ready.hasClass({ requires: tasks?.template.requires ?? plan?.requires ?? [], planning: tasks === undefined });

const outOfMemory = ({ memory, limits: { retryAfterMs } }: State, tenant: string): Rejection => ({
  kind: "shard-full",
  what: memory.isFull ? "memory" : `memory for tenant ${tenant}`,
  retryAfterMs,
});

function bytesOfSubmit(submit: Submit): number {
  let bytes = bytesOfJobAlone(submit) + bytesOfTags(submit.tags) + bytesOfNotices(submit.notify);
  if (submit.subscriber !== undefined) bytes += bytesOfSubscriber(submit.subscriber);
  for (const { name, needs, plan, lock, tasks } of submit.stages) {
    bytes += bytesOfShape({ name, needs, plan, lock });
    if (tasks) bytes += bytesOfSet(tasks);
  }
  return bytes;
}
