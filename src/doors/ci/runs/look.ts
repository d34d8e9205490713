/** Runs as callers see them: found by id, within the caller's tenant. */
import type { z } from "zod";
import { Fault, isFault } from "#base/fault.ts";
import { formatTask, parseJob } from "#base/ids.ts";
import type { JobView } from "#kernel/read/query.ts";
import type { WorkClient } from "#shard/client/client.ts";
import { isRejected } from "#shard/work/rejected.ts";
import type { Run, RunDetails, RunJob } from "#doors/ci/endpoints.ts";
import { door } from "#doors/ci/plan.ts";
import { type CellView, type RunJobView, viewRun } from "#doors/ci/view.ts";
import type { RunAbout, StoredRun } from "./record.ts";

/** A run with 256 cells in each of some jobs is shown whole. */
const tasksMax = 1_000;

/** To callers of another tenant a run is as unknown as one that does not exist. */
export async function findRun(
  client: Pick<WorkClient, "job">,
  run: string,
  tenant: string,
): Promise<{ readonly view: JobView; readonly about: RunAbout }> {
  const found = await client.job(run, { tasksMax }).catch((error: unknown) => {
    if (isRejected(error, "job-unknown") || isFault(error, "invalid")) return undefined;
    throw error;
  });
  if (found?.view.tenant !== tenant || found.view.door !== door) throw new Fault("not-found", "find the run", { run });
  return { view: found.view, about: aboutOf(found.view) };
}

export function aboutOf({ spec, name }: Pick<JobView, "spec" | "name">): RunAbout {
  const unknown = { title: name, workflow: name, path: "", repository: "", event: "", ref: "", sha: "", actor: "" };
  try {
    return { ...unknown, ...(JSON.parse(spec) as StoredRun).about };
  } catch {
    return unknown; // history may not have the spec any more
  }
}

const timeOf = (ms: number): string => new Date(ms).toISOString();

export function runOf(run: string, view: JobView, about: RunAbout): z.input<typeof Run> {
  const { status, conclusion } = viewRun(view);
  return {
    run,
    ...about,
    status,
    ...(conclusion && { conclusion }),
    createdAt: timeOf(view.submittedAtMs),
    ...(view.endedAtMs !== undefined && { endedAt: timeOf(view.endedAtMs) }),
  };
}

export function detailsOf(run: string, view: JobView, about: RunAbout): z.input<typeof RunDetails> {
  const shard = parseJob(run)?.shard ?? 0;
  const jobs = viewRun(view).jobs.flatMap((job) => jobsOf(job, shard));
  return { ...runOf(run, view, about), reason: view.reason, jobs };
}

function jobsOf(job: RunJobView, shard: number): readonly z.input<typeof RunJob>[] {
  const { id, needs, reason, status, conclusion, cells } = job;
  if (cells.length > 0) return cells.map((cell) => cellOf(job, cell, shard));
  const shared = { id, name: id, needs: [...needs], reason, status, attempts: 0, steps: [] };
  return [{ ...shared, ...(conclusion && { conclusion }) }];
}

function cellOf({ id, needs, reason }: RunJobView, cell: CellView, shard: number): z.input<typeof RunJob> {
  const { task, index: _index, steps, failure, ...rest } = cell;
  return {
    job: formatTask(shard, task),
    id,
    needs: [...needs],
    reason,
    ...rest,
    ...(failure !== undefined && { failure }),
    steps: steps.map(({ atMs, ...step }) => ({ ...step, ...(atMs !== undefined && { startedAt: timeOf(atMs) }) })),
  };
}

/** The number of the task that is meant: by its id, or by the name of a job with one cell. */
export function taskOf(run: string, view: JobView, named: string): number {
  const shard = parseJob(run)?.shard ?? 0;
  const cells = viewRun(view).jobs.flatMap((job) => job.cells.map((cell) => ({ id: job.id, ...cell })));
  const byId = cells.find(({ task }) => formatTask(shard, task) === named);
  const matches = byId ? [byId] : cells.filter(({ id, name }) => name === named || id === named);
  const [found, another] = matches;
  if (found && !another) return found.task;
  const why = another ? "several jobs have that name; give the job's id" : "the run has no such job, or none yet";
  throw new Fault(another ? "invalid" : "not-found", "find the job", { run, job: named.slice(0, 200), why });
}
