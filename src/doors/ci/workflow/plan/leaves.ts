/**
 * A workflow with all that it calls, as one flat list: each job that has steps is a leaf, named by the jobs that lead
 * to it (`build/test`). Pure.
 */
import { createHash } from "node:crypto";
import { ancestorsOf } from "#doors/ci/workflow/compile/jobs.ts";
import type { CallJob, Job, NormalJob, Workflow } from "#doors/ci/workflow/compile/model.ts";

export type Leaf = {
  readonly name: string;
  readonly job: NormalJob;
  /** From the run's own workflow down. */
  readonly callers: readonly CallJob[];
};

/** Names of stages are limited, and ids within one another may be longer. */
const nameLengthMax = 200;

export function leafName(ids: readonly string[]): string {
  const name = ids.join("/");
  if (name.length <= nameLengthMax) return name;
  const hash = createHash("sha256").update(name).digest("hex").slice(0, 16);
  return `${name.slice(0, nameLengthMax)}~${hash}`;
}

/** In the order of the files. What is called and not at hand has no leaves: see `missingCall`. */
export function leavesOf(workflow: Workflow, callers: readonly CallJob[] = []): readonly Leaf[] {
  return workflow.jobs.flatMap((job) => leavesBelow(job, callers));
}

function leavesBelow(job: Job, callers: readonly CallJob[]): readonly Leaf[] {
  if (job.kind === "job") return [{ name: leafName([...callers.map(({ id }) => id), job.id]), job, callers }];
  return job.called ? leavesOf(job.called.workflow, [...callers, job]) : [];
}

export function missingCall({ jobs }: Workflow): CallJob | undefined {
  for (const job of jobs) {
    const missing = job.kind === "call" && (job.called ? missingCall(job.called.workflow) : job);
    if (missing) return missing;
  }
  return undefined;
}

/** By name: the leaves that must have ended before it; those of its ancestors on every level (CI-3). */
export function ancestorLeaves(workflow: Workflow): ReadonlyMap<string, readonly string[]> {
  return linked(workflow, (job, level) => ancestorsOf(job, level.jobs));
}

/** By name: those that it names itself, or that its callers name for it. */
export function neededLeaves(workflow: Workflow): ReadonlyMap<string, readonly string[]> {
  return linked(workflow, (job) => job.needs.map(({ id }) => id));
}

type Before = (job: Job, level: Workflow) => readonly string[];

function linked(workflow: Workflow, before: Before): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, readonly string[]>();
  const follow = (level: Workflow, callers: readonly CallJob[], outer: readonly string[]): void => {
    const byId = new Map(level.jobs.map((job) => [job.id.toLowerCase(), leavesBelow(job, callers)]));
    for (const job of level.jobs) {
      const inner = before(job, level).flatMap((id) => (byId.get(id.toLowerCase()) ?? []).map(({ name }) => name));
      const all = [...new Set([...outer, ...inner])];
      if (job.kind === "job") found.set(leafName([...callers.map(({ id }) => id), job.id]), all);
      else if (job.called) follow(job.called.workflow, [...callers, job], all);
    }
  };
  follow(workflow, [], []);
  return found;
}
