/** How the tasks of an array come into being, end, and run again. */
import { assert, missing, must } from "#base/assert.ts";
import type { Stage, Task } from "#kernel/model/entities.ts";
import type { ArrayPlan, TaskTemplate } from "#kernel/model/model.ts";
import type { State } from "#kernel/model/state.ts";
import { EndsPage, failuresKept, pageTasks, TaskArray } from "#kernel/model/task-array.ts";
import {
  arrayTaskBytes,
  bytesOfArrayAlone,
  bytesOfFailure,
  bytesOfFailures,
  bytesOfLast,
  bytesOfPage,
  bytesOfResult,
  bytesOfStep,
  bytesOfText,
  resultReserve,
} from "#kernel/memory/weigh.ts";
import { beforeChange, isTaskOver, toReady } from "./moves.ts";
import { parallelMaxOf } from "#kernel/model/stage-rules.ts";

/** Adds the array to its stage. Returns by how much the job's memory estimate grows. */
export function openArray(
  state: State,
  stage: Stage,
  plan: ArrayPlan,
  template: TaskTemplate,
  firstTask: number,
): number {
  const array = new TaskArray(firstTask, stage, plan, template);
  (stage.arrays ??= []).push(array);
  state.addArray(array);
  stage.open += plan.count;
  return bytesOfArrayAlone(plan);
}

/** Queues a few tasks ahead of what executors have taken. The caller has called `beforeChange` for the stage. */
export function queueNextOf(state: State, array: TaskArray, atMs: number): void {
  const { stage } = array;
  const parallelMax = parallelMaxOf(stage);
  const { arrayAheadMax, arrayLiveMax } = state.limits;
  while (array.queued < arrayAheadMax && (parallelMax === 0 || stage.active < parallelMax)) {
    const held = array.held.shift();
    if (held !== undefined) {
      const task = array.live.get(held);
      if (!task || task.order !== 0 || isTaskOver(task.phase)) continue;
      beforeChange(state, task);
      stage.active += 1;
      toReady(state, task, atMs);
    } else if (array.unborn > 0 && array.live.size < arrayLiveMax) bear(state, array, atMs);
    else return;
  }
}

/** The next task comes into being, and into its queue. */
function bear(state: State, array: TaskArray, atMs: number): void {
  const { stage } = array;
  const task = array.make(array.next);
  array.next += 1;
  task.capturedIn = state.captures;
  array.live.set(task.index, task);
  state.tasks.set(task.no, task);
  stage.job.tenant.queued += 1;
  stage.active += 1;
  state.grow(stage.job, arrayTaskBytes);
  toReady(state, task, atMs);
}

/** The task of this number, which exists from now on: an owner with other limits may have queued further ahead. */
export function queuedTask(state: State, no: number, atMs: number): Task {
  const known = state.tasks.get(no);
  if (known) return known;
  const array = state.arrayOf(no) ?? missing(`task ${no}`);
  bearUntil(state, array, no - array.no + 1, atMs);
  return must(state.tasks.get(no), `task ${no} of its array`);
}

/** Makes sure that the tasks before this place exist, or did. */
export function bearUntil(state: State, array: TaskArray, place: number, atMs: number): void {
  beforeChange(state, array.stage);
  while (array.unborn > 0 && array.next < place) bear(state, array, atMs);
}

/** The task has ended: what is left of it goes into its page. */
export function retire(state: State, task: Task): void {
  const array = must(task.array, "array of its task");
  const { job } = array.stage;
  const number = Math.floor(task.index / pageTasks);
  let page = array.pages[number];
  if (!page) {
    page = new EndsPage(array, number);
    page.capturedIn = state.captures;
    array.pages[number] = page;
    state.grow(job, bytesOfPage(page));
  }
  beforeChange(state, page);
  page.put(task.index % pageTasks, task);
  array.resultBytes += bytesOfResult(task.result);
  array.live.delete(task.index);
  state.tasks.delete(task.no);
  array.ended += 1;
  state.grow(job, -arrayTaskBytes - bytesBeside(task) - resultReserve);
  if (task.phase !== "FAILED" || array.failures.length >= failuresKept) return;
  const { reason = "timed-out", message = "" } = task.last ?? {};
  const failure = { place: task.index, reason, message };
  array.failures.push(failure);
  state.grow(job, bytesOfFailure(failure));
}

/** What the task holds besides its result. */
export const bytesBeside = (task: Task): number =>
  (task.steps ?? []).reduce(
    (sum, step) => sum + bytesOfStep(step),
    bytesOfLast(task.last) + bytesOfFailures(task.failures),
  );

/** A task that has ended is to run again: it exists as an object once more. */
export function revive(state: State, no: number): Task {
  const known = state.tasks.get(no);
  if (known) return known;
  const array = state.arrayOf(no) ?? missing(`task ${no}`);
  const page = must(array.pageOf(no - array.no), "page of a task that has ended");
  beforeChange(state, array.stage);
  beforeChange(state, page);
  const task = array.view(no - array.no);
  assert(task.phase === "SUCCEEDED", "only a task with a result runs again");
  page.clear(task.index % pageTasks);
  array.resultBytes -= bytesOfResult(task.result);
  task.capturedIn = state.captures;
  array.live.set(task.index, task);
  state.tasks.set(no, task);
  array.ended -= 1;
  state.grow(array.stage.job, arrayTaskBytes + resultReserve);
  return task;
}

/** The tasks that do not exist yet end without having been queued. */
export function endRest(state: State, array: TaskArray, phase: "FAILED" | "CANCELLED", reason = ""): void {
  const { stage, unborn } = array;
  if (unborn === 0) return;
  beforeChange(state, stage);
  array.rest = phase;
  array.restReason = reason;
  array.ended += unborn;
  state.grow(stage.job, bytesOfText(reason) - resultReserve * unborn);
  stage.open -= unborn;
  if (phase === "FAILED") stage.failed += unborn;
  state.unsettled.add(stage);
}

/** The results are in the stage's manifest. */
export function dropResults(state: State, array: TaskArray): void {
  for (const page of array.pages) {
    if (!page?.results) continue;
    beforeChange(state, page);
    page.results = undefined;
  }
  state.grow(array.stage.job, -array.resultBytes);
  array.resultBytes = 0;
}

export function forgetArray(state: State, array: TaskArray): void {
  for (const page of array.pages) if (page) beforeChange(state, page);
  for (const task of array.live.values()) {
    beforeChange(state, task);
    state.tasks.delete(task.no);
  }
  state.dropArray(array);
}
