/**
 * What simulated work does, written into the specs, which are opaque to the kernel: how long a task runs and how it
 * ends, what a planner answers. So behaviour is drawn once, with the job, and every attempt follows it.
 */
import type { FailReason, Grant, LockSpec, PlanDecides, TaskTemplate } from "#kernel/model/model.ts";

export type TaskScript = {
  readonly runMs: number;
  /** How many attempts fail first, and why; then one succeeds. */
  readonly failures: number;
  readonly reason: FailReason;
  readonly outputs: number;
  readonly steps: number;
  /** Whether its result is to be published. */
  readonly publish: boolean;
  /** How many blobs an attempt leaves that fails. */
  readonly leaves: number;
  /** How often an attempt records how far it has got. */
  readonly checkpoints: number;
  /** For how long the outside system refuses it. */
  readonly refusedMs?: number;
};

export type ScriptedSet = { readonly template: TaskTemplate; readonly tasks: readonly TaskScript[] };

export type PlanScript = {
  /** The signal to wait for first. */
  readonly signal?: string;
  readonly waitMs: number;
  /** The first real worker that plans it never answers. */
  readonly stuck?: boolean;
  readonly answer:
    | (ScriptedSet & {
        readonly kind: "tasks";
        readonly more?: readonly ScriptedSet[];
        readonly decides?: PlanDecides;
        /** The lock that it names instead when the stage is planned again. */
        readonly lockAgain?: LockSpec;
        /** The tasks are an array instead. */
        readonly array?: { readonly count: number; readonly script: TaskScript };
      })
    | { readonly kind: "skip" }
    | { readonly kind: "fail" };
};

/** Planning scripts by stage name. */
export type JobScript = { readonly plans: Readonly<Record<string, PlanScript>> };

/** What an attempt asks to publish: it includes the token, so that the publication shows which attempt made it. */
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
