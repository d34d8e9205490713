/** Runs as callers see them: found by id, within the caller's tenant. */
import type { z } from "zod";
import { Fault, isFault } from "#base/fault.ts";
import { formatTask, parseJob } from "#base/ids.ts";
import type { JobView } from "#kernel/read/query.ts";
import type { WorkClient } from "#shard/client/client.ts";
import type { ListedJob } from "#shard/client/list.ts";
import { isRejected } from "#shard/work/rejected.ts";
import type { Run, RunDetails, RunJob } from "#doors/ci/endpoints.ts";
import { door } from "#doors/ci/plan.ts";
import { type CellView, reasonOf, type RunJobView, viewRun } from "#doors/ci/view.ts";
import type { RunAbout } from "./record.ts";
import { aboutOfTags, type RunTags } from "./tags.ts";
import { shownTitle } from "./title.ts";

/** A run with 256 cells in each of some jobs is shown whole. */
const tasksMax = 1_000;

/** To callers of another tenant a run is as unknown as one that does not exist. */
export async function findRun(
  client: Pick<WorkClient, "job">,
  run: string,
  tenant: string,
): Promise<{ readonly view: JobView; readonly about: RunTags }> {
  const found = await client.job(run, { tasksMax }).catch((error: unknown) => {
    if (isRejected(error, "job-unknown") || isFault(error, "invalid")) return undefined;
    throw error;
  });
  if (found?.view.tenant !== tenant || found.view.door !== door) throw new Fault("not-found", "find the run", { run });
  return { view: found.view, about: aboutOf(run, found.view) };
}

/** With the number that the kernel counted, unless the run repeats another. */
function aboutOf(run: string, { name, tags, series }: Pick<JobView, "name" | "tags" | "series">): RunTags {
  const { title, number = series?.number, ...about } = aboutOfTags(name, tags);
  return { ...about, title: shownTitle(title, { run, number }), ...(number !== undefined && { number }) };
}

const timeOf = (ms: number): string => new Date(ms).toISOString();

/** Of a list: what the jobs came to is not known there, only whether all is well. */
export function listedRun(
  job: Pick<ListedJob, "jobId" | "name" | "phase" | "submittedAtMs" | "endedAtMs" | "tags" | "series">,
): z.input<typeof Run> {
  const { submittedAtMs, endedAtMs, phase } = job;
  const state = listedStates[phase] ?? { status: "in_progress" };
  return {
    run: job.jobId,
    ...shown(aboutOf(job.jobId, job)),
    ...state,
    ...times(submittedAtMs, endedAtMs),
  };
}

const listedStates: Readonly<Record<string, Pick<z.input<typeof Run>, "status" | "conclusion">>> = {
  WAITING: { status: "queued" },
  SUCCEEDED: { status: "completed", conclusion: "success" },
  FAILED: { status: "completed", conclusion: "failure" },
  CANCELLED: { status: "completed", conclusion: "cancelled" },
};

const shown = ({ record: _record, ...about }: RunTags): RunAbout => about;

const times = (submittedAtMs: number, endedAtMs: number | undefined) => ({
  createdAt: timeOf(submittedAtMs),
  ...(endedAtMs !== undefined && { endedAt: timeOf(endedAtMs) }),
});

export function runOf(run: string, view: JobView, about: RunTags): z.input<typeof Run> {
  const { status, conclusion } = viewRun(view);
  const state = { status, ...(conclusion && { conclusion }) };
  return { run, ...shown(about), ...state, ...times(view.submittedAtMs, view.endedAtMs) };
}

/** `needs` are what the file says: the stages of a job wait for all ancestors, and history does not know for whom. */
export function detailsOf(
  run: string,
  view: JobView,
  about: RunTags,
  needs: ReadonlyMap<string, readonly string[]>,
): z.input<typeof RunDetails> {
  const shard = parseJob(run)?.shard ?? 0;
  const jobs = viewRun(view).jobs.flatMap((job) => jobsOf({ ...job, needs: needs.get(job.id) ?? job.needs }, shard));
  return { ...runOf(run, view, about), reason: reasonOf(view), jobs };
}

function jobsOf(job: RunJobView, shard: number): readonly z.input<typeof RunJob>[] {
  const { id, needs, reason, status, conclusion, cells } = job;
  if (cells.length > 0) return cells.map((cell) => cellOf(job, cell, shard));
  const shared = { id, name: id.replaceAll("/", " / "), needs: [...needs], reason, status, attempts: 0, steps: [] };
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
