/** How jobs, stages and tasks wait for locks, get them, and give them back. */
import { must } from "#base/assert.ts";
import type { EventOf, LockUser } from "#kernel/model/event.ts";
import type { State } from "#kernel/model/state.ts";
import { lockOf, lockSpecOf, placeIn, removeFrom, type LockHolder } from "#kernel/ready/locks.ts";
import type { Task } from "#kernel/model/entities.ts";
import { beforeChange, toReady } from "./moves.ts";
import { queueTask } from "./task-lock.ts";
import { run, setLock } from "./stage.ts";

export function applyLockQueued(state: State, event: EventOf<"lock-queued">): void {
  // An earlier version queued this task ahead of one that the stage held back (golden/v4-held-back).
  if (event.task !== undefined && !state.locks.tasks.has(event.task))
    queueAhead(state, state.task(event.task), event.at);
  const holder = holderOf(state, event);
  const spec = must(lockSpecOf(holder), "lock of one that asks for it");
  const lock = lockOf(state.locks, holder.job.tenant, spec);
  lock.limit = spec.limit;
  lock.queue.push(holder);
  state.locks.unsettled.add(lock);
  if (holder.task) {
    beforeChange(state, holder.task.task);
    state.locks.wanting.delete(holder.task);
    holder.task.state = "queued";
  } else if (holder.stage) {
    beforeChange(state, holder.stage);
    holder.stage.lockState = "queued";
  }
}

function queueAhead(state: State, task: Task, atMs: number): void {
  beforeChange(state, task);
  beforeChange(state, task.stage);
  task.stage.active += 1;
  queueTask(state, task, atMs);
}

export function applyLockGranted(state: State, event: EventOf<"lock-granted">): void {
  const holder = holderOf(state, event);
  const { job, stage, task } = holder;
  const lock = lockOf(state.locks, job.tenant, must(lockSpecOf(holder), "lock of its holder"));
  removeFrom(lock.queue, holder);
  if (placeIn(lock.holders, holder) === -1) lock.holders.push(holder);
  state.locks.unsettled.add(lock);
  if (task) {
    beforeChange(state, task.task);
    task.state = "held";
    return toReady(state, task.task, event.at);
  }
  if (stage) {
    beforeChange(state, stage);
    stage.lockState = "held";
    state.unsettled.add(stage);
    // The lock was the last thing that a planned stage waited for.
    if (stage.phase === "READY" && stage.planned && !stage.cancelled) run(state, stage, event.at);
    return;
  }
  beforeChange(state, job);
  if (job.phase === "WAITING") job.phase = "RUNNING";
  for (const each of job.stages) if (each.waiting === 0) state.unsettled.add(each);
}

export function applyLockFreed(state: State, event: EventOf<"lock-freed">): void {
  const holder = holderOf(state, event);
  const { stage, task } = holder;
  const lock = lockOf(state.locks, holder.job.tenant, must(lockSpecOf(holder), "lock of its holder"));
  removeFrom(lock.holders, holder);
  if (task) state.locks.tasks.delete(task.task.no);
  else if (stage) {
    beforeChange(state, stage);
    stage.lockState = "none";
    const { planned } = stage;
    if (stage.phase === "READY" && planned?.decides.lock) {
      setLock(state, stage, planned.decides.lock);
      state.unsettled.add(stage);
    }
  }
  if (lock.holders.length === 0 && lock.queue.length === 0) {
    state.locks.byKey.delete(lock.key);
    state.locks.unsettled.delete(lock);
  } else state.locks.unsettled.add(lock);
}

function holderOf(state: State, event: LockUser): LockHolder {
  const job = state.job(event.job);
  if (event.stage === -1) return { job, stage: undefined };
  const stage = must(job.stages[event.stage], "stage with a lock");
  if (event.task === undefined) return { job, stage };
  return { job, stage, task: must(state.locks.tasks.get(event.task), "task with a lock") };
}
