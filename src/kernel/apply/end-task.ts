/** How a task ends, and how the next ones of its stage are queued. */
import { assert } from "#base/assert.ts";
import type { Stage, Task } from "#kernel/model/entities.ts";
import { parallelMaxOf } from "#kernel/model/stage-rules.ts";
import type { State } from "#kernel/model/state.ts";
import { queueNextOf, retire } from "./arrays.ts";
import { leaveTaskLock, queueTask } from "./task-lock.ts";
import { beforeChange, isTaskOver, setCheckpoint } from "./moves.ts";

/** Moves the next held tasks of a stage into the ready queue, as many as its parallelMax allows. */
export function queueHeldTasks(state: State, stage: Stage, atMs: number): void {
  beforeChange(state, stage);
  const parallelMax = parallelMaxOf(stage);
  while (stage.nextHeld < stage.tasks.length && (parallelMax === 0 || stage.active < parallelMax)) {
    const task = stage.tasks[stage.nextHeld++] as Task;
    if (isTaskOver(task.phase) || task.order !== 0 || isLocking(state, task)) continue;
    beforeChange(state, task);
    stage.active += 1;
    queueTask(state, task, atMs);
  }
  if (stage.arrays) for (const array of stage.arrays) queueNextOf(state, array, atMs);
}

/** Whether the task is to be queued once it has its lock. One that holds it already may have it since its last run. */
function isLocking(state: State, { template, no }: Task): boolean {
  const lock = template.lock && state.locks.tasks.get(no);
  return lock !== undefined && lock.state !== "held";
}

/** The task has no second attempt any more, nor the prospect of one. */
export function notSpeculated(task: Task): void {
  if (task.speculated && task.stage.pace) task.stage.pace.spares -= 1;
  task.speculated = false;
}

/** Gives the task its final phase for this generation. It must have no live claims left. */
export function endTask(state: State, task: Task, phase: "SUCCEEDED" | "FAILED" | "CANCELLED", atMs: number): void {
  const { stage } = task;
  assert(task.claim === undefined && task.second === undefined, "a task that ends has no live claim");
  beforeChange(state, task);
  beforeChange(state, stage);
  state.ready.dequeue(task);
  state.agenda.drop(task);
  if (task.checkpoint) setCheckpoint(state, task, undefined);
  if (task.speculated && stage.pace) stage.pace.spares -= 1;
  const wasActive = task.order !== 0 || isLocking(state, task);
  task.phase = phase;
  if (task.template.lock) leaveTaskLock(state, task);
  stage.job.tenant.queued -= 1;
  state.unsettled.add(stage);
  if (task === stage.planning) return;
  stage.open -= 1;
  if (phase === "SUCCEEDED") stage.done += 1;
  if (phase === "FAILED") stage.failed += 1;
  if (wasActive) stage.active -= 1;
  if (task.array) retire(state, task);
  if (stage.phase === "RUNNING" && !stage.cancelled) queueHeldTasks(state, stage, atMs);
}
