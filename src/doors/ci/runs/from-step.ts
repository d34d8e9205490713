/** Where a run begins that goes on in the middle of a job: what an earlier attempt kept before one of its steps. */
import { Fault } from "#base/fault.ts";
import { formatTask, parseJob } from "#base/ids.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { JobView, TaskView } from "#kernel/read/query.ts";
import { type Kept, keptBefore, readKept } from "#doors/ci/job/kept-steps.ts";
import { readCellResult } from "#doors/ci/result.ts";
import { checkScript, type FromStep } from "./edited-step.ts";
import { taskOf } from "./look.ts";
import { recall, writeText } from "./texts.ts";

export type FromStepWish = { readonly job: string; readonly step: number; readonly script?: string | undefined };

const doing = "run again from a step";

export async function findFromStep(
  { run, view, before }: { readonly run: string; readonly view: JobView; readonly before: FromStep | undefined },
  { job, step, script }: FromStepWish,
  blobs: BlobStore,
): Promise<FromStep> {
  const number = taskOf(run, view, job);
  const task = view.tasks.find((one) => one.task === number);
  const stage = view.stages.find((one) => one.stage === task?.stage);
  if (!task || !stage) throw new Fault("not-found", doing, { job });
  const { kept, log } = await keptOf(task, blobs);
  const at = keptBefore(kept, step);
  if (!at) {
    const known = kept.points.map(({ numbered }) => numbered);
    throw new Fault("not-found", doing, { job, step, why: "nothing was kept before it", known: known.join(", ") });
  }
  if (script !== undefined) checkScript(script);
  const isSame = before?.job === stage.name && before.key === task.key;
  return {
    job: stage.name,
    key: task.key,
    run,
    step,
    next: at.next,
    kept: await writeText(blobs, JSON.stringify({ ...at, ...(log === undefined ? { logBytes: 0 } : { log }) })),
    // what an earlier one went on from stays sealed for the task that began it
    sealedFor: isSame ? before.sealedFor : { job: run, task: formatTask(parseJob(run)?.shard ?? 0, number) },
    ...(script !== undefined && { script }),
  };
}

async function keptOf(
  { result, lastFailure }: TaskView,
  blobs: BlobStore,
): Promise<{ readonly kept: Kept; readonly log: string | undefined }> {
  const outcome = result ?? lastFailure?.result;
  const read = outcome && readCellResult(outcome.payload);
  if (read?.kept === undefined)
    throw new Fault("not-found", doing, {
      why: "nothing of this job was kept: it succeeded, or it starts again when its runner is lost",
      try: "run the whole job again",
    });
  return { kept: await readFrom(read.kept, blobs), log: read.log };
}

/** Throws Fault "not-found" when its time is over. */
export async function readFrom(digest: string, blobs: BlobStore): Promise<Kept> {
  const kept = readKept(JSON.stringify(await recall(blobs, { blob: digest })));
  if (!kept) throw new Fault("corrupt", doing, { digest });
  return kept;
}
