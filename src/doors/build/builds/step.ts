/** One action of a build as a task: what its planner tells the worker that runs it. Pure. */
import type { TaskPlan, TaskTemplate } from "#kernel/model/model.ts";
import type { Group } from "#wire/generated/millrace/build/v1/builds.ts";
import { readSpec, templateOf, type ActionSpec } from "#doors/build/plan.ts";
import { stepKind } from "./plan-build.ts";

export type StepSpec = ActionSpec & {
  /** Why it is run without a cache lookup; left out: the cache is checked first. */
  readonly without?: "skip-cache-lookup" | "do-not-cache" | "may-not-read";
};

/** An action that cannot be run, and why: it fails as soon as a worker takes it. */
export type RefusedStep = { readonly refused: string };

export const stepTask = (key: string, spec: StepSpec | RefusedStep): TaskPlan => ({ key, spec: JSON.stringify(spec) });

export function readStep(text: string): StepSpec | RefusedStep | undefined {
  const spec = readSpec(text);
  if (spec) return spec;
  const { refused } = JSON.parse(text) as Partial<RefusedStep>;
  return typeof refused === "string" ? { refused } : undefined;
}

/** All tasks of a stage share one: the longest of their timeouts applies to each. */
export const stepTemplate = ({ requires, timeoutMs }: Group, queueMs: number): TaskTemplate => ({
  ...templateOf({ requires, queueMs, timeoutMs }),
  kind: stepKind,
});
