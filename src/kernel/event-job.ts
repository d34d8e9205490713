import type { Event } from "./event.ts";
import type { State } from "./state.ts";

/** The job that an event belongs to, for those who watch one; undefined for what concerns the shard. */
export function jobOf(state: State, event: Event): number | undefined {
  if ("job" in event) return event.job;
  if ("task" in event) return state.tasks.get(event.task)?.stage.job.no ?? state.endedClaim?.task.stage.job.no;
  return undefined;
}
