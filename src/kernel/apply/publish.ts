/** The outbox: committed results that are not published yet. A job cannot succeed while its outbox is not empty. */
import { must } from "#base/assert.ts";
import type { Job, Publication, Task } from "#kernel/model/entities.ts";
import type { EventOf } from "#kernel/model/event.ts";
import { beforeChange, isJobOver } from "./moves.ts";
import type { State } from "#kernel/model/state.ts";

/** Adds the task's result, just committed, to the outbox. */
export function toOutbox(state: State, task: Task, committedAtMs: number): void {
  const { no, generation, plan, stage } = task;
  const result = must(task.result, "result of a committed task");
  file(state, { job: stage.job, task: no, spec: plan.spec, generation, result, committedAtMs });
}

/** Adds the publication to the indices of the state and of its job. */
export function file(state: State, publication: Publication): void {
  const { job, task } = publication;
  (job.outbox ??= new Map()).set(task, publication);
  state.outbox.set(task, publication);
}

/** The result became invalid, so it is no longer published; the result that replaces it will be. */
export function dropFromOutbox(state: State, task: Task): void {
  const waiting = state.outbox.get(task.no);
  if (waiting) remove(state, waiting);
}

export function applyPublished(state: State, event: EventOf<"published">): void {
  const waiting = must(state.outbox.get(event.task), "unpublished result in the outbox");
  remove(state, waiting);
  mayEnd(state, waiting.job);
}

export function applyPublishingGivenUp(state: State, event: EventOf<"publishing-given-up">): void {
  const job = state.job(event.job);
  for (const waiting of job.outbox?.values() ?? []) remove(state, waiting);
  mayEnd(state, job);
}

function remove(state: State, { job, task }: Publication): void {
  beforeChange(state, job);
  const known = state.tasks.get(task);
  if (known) beforeChange(state, known);
  state.outbox.delete(task);
  if (job.outbox?.delete(task) && job.outbox.size === 0) job.outbox = undefined;
}

function mayEnd(state: State, job: Job): void {
  if (!job.outbox && job.stagesOpen === 0 && !isJobOver(job)) state.unsettled.add(job);
}
