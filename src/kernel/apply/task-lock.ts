/** How a task asks for its lock, and how those that have ended leave theirs. */
import type { Task } from "#kernel/model/entities.ts";
import type { State } from "#kernel/model/state.ts";
import { lockOf, lockSpecOf, removeFrom, taskHolder, type LockHolder, type TaskLock } from "#kernel/ready/locks.ts";
import { lockMayBeFree, toReady } from "./moves.ts";

/** Puts a task into its ready queue for the first time in this generation, or has it ask for its lock first. */
export function queueTask(state: State, task: Task, atMs: number): void {
  if (!task.template.lock) return toReady(state, task, atMs);
  const known = state.locks.tasks.get(task.no);
  // It still holds the lock of the generation before: an attempt of that may be running.
  if (known?.state === "held") return toReady(state, task, atMs);
  const wanted: TaskLock = { task, state: "wanted", claims: known?.claims ?? 0 };
  state.locks.tasks.set(task.no, wanted);
  state.locks.wanting.add(wanted);
  task.phase = "READY";
}

/** The task has ended: it asks for its lock no more. A lock that it holds is freed when its claims are over. */
export function leaveTaskLock(state: State, task: Task): void {
  const known = state.locks.tasks.get(task.no);
  if (!known) return;
  if (known.state === "held") return lockMayBeFree(state, taskHolder(known));
  state.locks.wanting.delete(known);
  state.locks.tasks.delete(task.no);
  if (known.state === "queued") leaveLock(state, taskHolder(known));
}

export function leaveLock(state: State, holder: LockHolder): void {
  const spec = lockSpecOf(holder);
  if (!spec) return;
  const lock = lockOf(state.locks, holder.job.tenant, spec);
  removeFrom(lock.queue, holder);
  if (!holder.task && holder.stage?.lockState === "queued") holder.stage.lockState = "none";
  if (lock.holders.length > 0 || lock.queue.length > 0) return lockMayBeFree(state, holder);
  state.locks.byKey.delete(lock.key);
  state.locks.unsettled.delete(lock);
}
