/**
 * Serves the results of a stage as lines, one a task: from its manifest, or for a stage without one from its shard or
 * from history. Only one line of a manifest, or one page of a shard's tasks, is in memory at a time.
 */
import type { z } from "zod";
import type { Digest } from "#base/digest.ts";
import { Fault, isFault } from "#base/fault.ts";
import { formatTask, parseJob } from "#base/ids.ts";
import type { StageResultLine } from "#api/jobs.ts";
import type { BlobStore } from "#blobs/store.ts";
import { Problem } from "#http/problem.ts";
import type { StageView, TaskView } from "#kernel/read/query.ts";
import type { Job, WorkClient } from "#shard/client/client.ts";
import type { ManifestEntry } from "#shard/manifest/format.ts";
import { manifestLines, readManifest } from "#shard/manifest/read.ts";
import { withoutOutput } from "#worker/printed/failure-output.ts";

export type StageResultsPorts = {
  readonly work: Pick<WorkClient, "job" | "manifestOf">;
  /** Where manifests are; left out: only stages without one can be read. */
  readonly blobs?: BlobStore | undefined;
};

type Line = z.input<typeof StageResultLine>;
type ResultLine = Extract<Line, { kind: "result" }>;

export type StageResultsQuery = {
  readonly job: Job;
  readonly stage: string;
  readonly generation?: number | undefined;
  readonly from: number;
  readonly limit: number;
  readonly signal: AbortSignal;
};

/** A shard is asked for so many tasks at once. */
const askedAtOnce = 500;
const endedPhases: ReadonlySet<string> = new Set(["COMPLETED", "FAILED", "SKIPPED", "CANCELLED"]);

/** Throws before the first line if there is nothing to read: then the caller gets a problem, not half an answer. */
export async function stageResults(ports: StageResultsPorts, query: StageResultsQuery): Promise<AsyncIterable<Line>> {
  const { job } = query;
  const stage = job.view.stages.find(({ name }) => name === query.stage);
  if (!stage) throw new Problem(404, "stage: the job has no such stage");
  const { generation = stage.generation } = query;
  const manifest = generation === stage.generation ? stage.manifest : await earlier(ports, query, stage, generation);
  if (manifest !== undefined) return await listed(ports, query, { stage, generation, manifest });
  if (stage.arrays) throw new Problem(409, notYet(stage));
  return unlisted(ports, query, stage);
}

const notYet = ({ phase, done, failed, tasks }: StageView): string =>
  endedPhases.has(phase)
    ? `the stage ended as ${phase} before its results were listed`
    : `the results of an array are listed when its stage has ended: ${done + failed} of ${tasks} tasks have`;

async function earlier(
  { work }: StageResultsPorts,
  { job: { jobId }, generation: wanted }: StageResultsQuery,
  { stage, generation: now }: StageView,
  generation: number,
): Promise<Digest> {
  const found = wanted === undefined ? undefined : await work.manifestOf(jobId, stage, generation);
  if (found !== undefined) return found;
  throw new Problem(404, `generation: no list of results of generation ${generation} is known; the stage is at ${now}`);
}

type OfManifest = { readonly stage: StageView; readonly generation: number; readonly manifest: Digest };

async function listed(
  { blobs }: StageResultsPorts,
  { job: { jobId }, from, limit }: StageResultsQuery,
  { stage, generation, manifest }: OfManifest,
): Promise<AsyncIterable<Line>> {
  if (!blobs) throw new Fault("unavailable", "read results", { why: "this node has no store" });
  const root = await readManifest(blobs, manifest).catch((error: unknown) => {
    if (!isFault(error, "not-found")) throw error;
    throw new Problem(410, "the results of this stage are no longer kept", { cause: error });
  });
  const tasks = root.sets.reduce((sum, set) => sum + set.tasks, 0);
  const shard = parseJob(jobId)?.shard ?? 0;
  const { name, phase } = stage;
  return (async function* (): AsyncGenerator<Line> {
    yield { kind: "stage", stage: name, phase, generation, tasks, complete: true, manifest };
    for await (const entry of manifestLines(blobs, root, { from, limit })) yield ofEntry(shard, entry);
  })();
}

const ofEntry = (shard: number, { task, key, phase, generation, payload, digests }: ManifestEntry): ResultLine => ({
  kind: "result",
  task: formatTask(shard, task),
  key,
  phase,
  generation,
  ...(payload !== undefined && { result: payload, digests: [...(digests ?? [])] }),
});

async function* unlisted(ports: StageResultsPorts, query: StageResultsQuery, stage: StageView): AsyncGenerator<Line> {
  const { job, from, limit } = query;
  const shard = parseJob(job.jobId)?.shard ?? 0;
  const known = job.live ? undefined : job.view.tasks.filter((task) => task.stage === stage.stage && !task.planning);
  const { name, phase, generation, tasks } = stage;
  const complete = endedPhases.has(phase) && (known?.length ?? tasks) === tasks;
  yield { kind: "stage", stage: name, phase, generation, tasks, complete };
  const all = known?.slice(from, from + limit) ?? tasksOf(ports, query, stage);
  for await (const task of all) yield ofTask(shard, task);
}

const ofTask = (shard: number, { task, key, phase, generation, result, lastFailure }: TaskView): ResultLine => ({
  kind: "result",
  task: formatTask(shard, task),
  key,
  phase,
  generation,
  ...(result && { result: result.payload, digests: [...result.digests] }),
  ...(!result &&
    lastFailure && { failure: { reason: lastFailure.reason, message: withoutOutput(lastFailure.message) } }),
});

/** Ends with a fault when the stage has begun its next generation: one answer never mixes two. */
async function* tasksOf(
  { work }: StageResultsPorts,
  { job: { jobId }, from, limit, signal }: StageResultsQuery,
  { stage, generation }: StageView,
): AsyncGenerator<TaskView> {
  let last = -1;
  for (let at = from; at < from + limit;) {
    const tasksMax = Math.min(askedAtOnce, from + limit - at);
    const { view, live } = await work.job(jobId, { tasksMax, of: { stage, tasksFrom: at }, signal });
    // It left memory between two pages: history has the same tasks in the same order.
    const own = live ? view.tasks : view.tasks.filter((task) => task.stage === stage && !task.planning);
    const page = live ? own : own.slice(at, at + tasksMax);
    const isAsBefore = view.stages[stage]?.generation === generation;
    if (!isAsBefore) throw new Fault("stale", "read results", { job: jobId, why: "the stage runs again" });
    for (const task of page) {
      // An owner of an earlier version does not know that one stage was meant.
      if (task.stage !== stage || task.task <= last)
        throw new Fault("unavailable", "read results", { job: jobId, why: "its node has an earlier version" });
      last = task.task;
      yield task;
    }
    at += page.length;
    if (page.length < tasksMax) return;
  }
}
