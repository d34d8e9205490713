import type { Event } from "./event.ts";
import type { State } from "./state.ts";

/** The job that an event belongs to, for watchers of that job; undefined for events that concern the whole shard. */
export function jobOf(state: State, event: Event): number | undefined {
  const { job, task } = event as { readonly job?: number; readonly task?: number };
  if (job !== undefined) return job;
  if (task !== undefined) return state.tasks.get(task)?.stage.job.no ?? state.endedClaim?.task.stage.job.no;
  return undefined;
}
