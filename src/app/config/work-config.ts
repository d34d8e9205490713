/** What callers other than operators may ask for when they submit work of their own kinds. */
import { z } from "zod";
import { formatDuration } from "#base/units.ts";
import { Duration } from "#base/config-words.ts";
import type { PlanSpec, StageSpec, TaskSet } from "#kernel/model/model.ts";
import type { Submit } from "#kernel/model/command.ts";

export const WorkConfig = z.strictObject({
  deadlineMax: Duration({ min: "1s", max: "35d" })
    .prefault("7d")
    .describe("How long a job, the planning of a stage and the wait for an executor may take."),
  attemptMax: Duration({ min: "1s", max: "35d" }).prefault("1d").describe("How long one attempt at a task may run."),
  priorityMax: z
    .int()
    .min(0)
    .max(100)
    .default(100)
    .describe("Priorities range from minus this to this. They order the work of one tenant, never of two."),
});

export type WorkBounds = z.output<typeof WorkConfig>;

/** Why the limits refuse it, or undefined. */
export function outOfBounds({ priority, deadlineMs, stages }: Submit, bounds: WorkBounds): string | undefined {
  if (Math.abs(priority) > bounds.priorityMax)
    return `priority ${priority} is not from -${bounds.priorityMax} to ${bounds.priorityMax} (work.priorityMax)`;
  return (
    tooLong("deadline_ms", deadlineMs, "deadlineMax", bounds) ??
    stages.map((stage) => outOfStageBounds(stage, bounds)).find((why) => why !== undefined)
  );
}

const outOfStageBounds = ({ tasks, plan }: StageSpec, bounds: WorkBounds): string | undefined =>
  (tasks && outOfTaskBounds(tasks, bounds)) ?? (plan && outOfPlanBounds(plan, bounds));

const outOfPlanBounds = ({ deadlineMs }: PlanSpec, bounds: WorkBounds): string | undefined =>
  tooLong("plan.deadline_ms", deadlineMs, "deadlineMax", bounds);

export const outOfTaskBounds = (
  { template: { attemptMs, queueMs } }: TaskSet,
  bounds: WorkBounds,
): string | undefined =>
  tooLong("attempt_ms", attemptMs, "attemptMax", bounds) ?? tooLong("queue_ms", queueMs, "deadlineMax", bounds);

function tooLong(
  field: string,
  ms: number,
  bound: "deadlineMax" | "attemptMax",
  bounds: WorkBounds,
): string | undefined {
  const most = bounds[bound];
  return ms > most
    ? `${field} asks for ${formatDuration(ms)}, but the limit is ${formatDuration(most)} (work.${bound})`
    : undefined;
}
