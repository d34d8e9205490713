/** Jobs that have ended and are to tell it: they stay in memory until every notice has been told, or given up. */
import type { Job } from "#kernel/model/entities.ts";
import type { EventOf } from "#kernel/model/event.ts";
import { beforeChange } from "./moves.ts";
import type { State } from "#kernel/model/state.ts";

export const tellsUntilMs = (state: State, job: Job): number => job.endedAtMs + state.limits.noticeMsMax;

/** The job has ended: from now on it is told. */
export function startTelling(state: State, job: Job): void {
  if (!job.extras || job.extras.owed.length === 0) return;
  state.telling.add(job);
  if (!job.outbox) state.agenda.file(job, tellsUntilMs(state, job), state.nowMs);
}

export function applyNotified(state: State, event: EventOf<"notified">): void {
  const job = state.job(event.job);
  beforeChange(state, job);
  if (!job.extras) return;
  job.extras.owed = job.extras.owed.filter((notice) => notice !== event.notice);
  if (job.extras.owed.length === 0) state.telling.delete(job);
}
