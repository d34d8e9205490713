/**
 * What simulated work does, written into the specs that the kernel carries without looking: how long a task runs and
 * how it ends, what a planner answers. So behaviour is drawn once, with the job, and every attempt follows it.
 */
import type { FailReason, Grant, TaskTemplate } from "#kernel/model/model.ts";

export type TaskScript = {
  readonly runMs: number;
  /** How many attempts fail first, and why; then one succeeds. */
  readonly failures: number;
  readonly reason: FailReason;
  readonly outputs: number;
  readonly steps: number;
  /** Whether its result is to be known outside. */
  readonly publish: boolean;
  /** For how long nobody outside takes it. */
  readonly refusedMs?: number;
};

export type PlanScript = {
  /** Wait for this signal first. */
  readonly signal?: string;
  readonly waitMs: number;
  readonly answer:
    | { readonly kind: "tasks"; readonly template: TaskTemplate; readonly tasks: readonly TaskScript[] }
    | { readonly kind: "skip" }
    | { readonly kind: "fail" };
};

/** Planning scripts by stage name. */
export type JobScript = { readonly plans: Readonly<Record<string, PlanScript>> };

/** What an attempt wants to be known: its token tells whose word it is. */
export function publishOf(shard: number, { task, generation, token, spec }: Grant): string {
  const said = `${shard}/${task}/${generation} as ${token}`;
  const { refusedMs } = readTask(spec);
  return refusedMs === undefined ? said : `${said}${refused}${refusedMs}`;
}

const refused = ", refused for ";
export const refusedMsOf = (publish: string): number => Number(publish.split(refused)[1] ?? 0);

export const writeScript = (script: TaskScript | JobScript): string => JSON.stringify(script);
export const readTask = (spec: string): TaskScript => JSON.parse(spec) as TaskScript;
export const readJob = (spec: string): JobScript => JSON.parse(spec) as JobScript;
