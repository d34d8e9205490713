/**
 * Every lookup of a job or a task that a caller names by its number.
 *
 * VT1 A caller that is narrowed to a tenant gets undefined for another tenant's work, exactly as for work that does not
 * exist.
 */
import type { OfTenant } from "#kernel/model/command.ts";
import type { Job, Task } from "#kernel/model/entities.ts";
import type { State } from "#kernel/model/state.ts";

export const isVisible = (job: Job, { tenant }: OfTenant): boolean =>
  tenant === undefined || job.tenant.name === tenant;

export function visibleJob(state: State, named: OfTenant & { readonly job: number }): Job | undefined {
  const job = state.jobs.get(named.job);
  return job && isVisible(job, named) ? job : undefined;
}

export function visibleTask(state: State, named: OfTenant & { readonly task: number }): Task | undefined {
  const task = state.findTask(named.task);
  return task && isVisible(task.stage.job, named) ? task : undefined;
}
