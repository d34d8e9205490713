/**
 * Runs a run again (CI-68): the same record, so the same commit, event and rights. What succeeded and is not asked for
 * again is reused: the kernel takes an earlier result where stage, cell and specification are the same.
 */
import { createHash } from "node:crypto";
import { Fault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { Reuse } from "#kernel/model/model.ts";
import type { JobView, StageView, TaskView } from "#kernel/read/query.ts";
import type { Submitted } from "#shard/client/client.ts";
import { conclusionStage, type PlanRules, planRun, planStage, sandboxLabel } from "#doors/ci/plan.ts";
import { readCellResult } from "#doors/ci/result.ts";
import { workflowOf } from "#doors/ci/run-frame.ts";
import { viewRun } from "#doors/ci/view.ts";
import { findFromStep } from "./from-step.ts";
import { withShortSpecs } from "./planners.ts";
import { findStored, readRun, type RunRecord, storeRun, type StoredRun } from "./record.ts";
import { inputsOf, withNeeds } from "./stage-inputs.ts";
import { evaluated, type StartPorts, tracedSubmit } from "./start.ts";
import type { RunTags } from "./tags.ts";
import { titleOf } from "./title.ts";

export type Again = {
  readonly failed: boolean;
  readonly job?: string | undefined;
  readonly isTrusted: boolean;
  readonly key?: string;
  /** The named job goes on at the step with this number, with another script if one is given. */
  readonly fromStep?: number | undefined;
  readonly script?: string | undefined;
};

const attemptsMax = 50;

export async function rerun(
  { client, blobs, traces, onRunnerLoss }: StartPorts,
  { run, view, about }: { readonly run: string; readonly view: JobView; readonly about: RunTags },
  again: Again,
): Promise<Submitted> {
  if (viewRun(view).status !== "completed")
    throw new Fault("invalid", "run again", { why: "the run has not ended", try: "cancel it first" });
  const before = await findStored(blobs, about.record);
  if (!before) throw new Fault("not-found", "find the run's record", { run, why: "it is too old to be run again" });
  const attempt = (before.about.attempt ?? 1) + 1;
  if (attempt > attemptsMax)
    throw new Fault("invalid", "run again", { why: `a run is run at most ${attemptsMax} times` });
  // who may start it again may let it in
  const { requires = [], waitsFor: _letIn, from: former, ...rest } = await readRun(blobs, before);
  const { fromStep, job, script } = again;
  if (fromStep !== undefined && job === undefined)
    throw new Fault("invalid", "run again from a step", { why: "a step is one of a job", try: "name the job as well" });
  if (script !== undefined && (fromStep === undefined || !again.isTrusted))
    throw new Fault("invalid", "run an edited script", {
      why: fromStep === undefined ? "it takes the place of a step's" : "only operators may: no commit has it",
    });
  const wish = fromStep !== undefined && job !== undefined ? { job, step: fromStep, script } : undefined;
  const from = wish && (await findFromStep({ run, view, before: former }, wish, blobs));
  // a caller without an operator's rights must not gain any by running again what an operator started
  const asks = again.isTrusted ? requires : [...new Set([...requires, sandboxLabel])];
  const record: RunRecord = { ...rest, ...(asks.length > 0 && { requires: asks }), ...(from && { from }) };
  const kept = await storeRun(blobs, record, {
    ...before.about,
    title: evaluated("name the run", () => titleOf(workflowOf(record), record, attempt)),
    attempt,
    ...(about.number !== undefined && { number: about.number }),
    again: run,
    root: before.about.root ?? run,
  });
  const ofCluster = onRunnerLoss && {
    onRunnerLoss: (labels: readonly string[]) => onRunnerLoss(view.tenant, labels),
  };
  const rules: PlanRules = { exclusive: new Set(), ...ofCluster };
  const reuse = await reusedOf({ view: withNeeds(view, record), record, stored: kept.stored, rules }, again, blobs);
  const order = planRun(record, kept, {
    tenant: view.tenant,
    shardKey: `${view.tenant}/ci ${before.about.repository}`,
    unique: `${run} ${attempt}`,
    ...(again.key !== undefined && { key: again.key, payloadHash: payloadHashOf(run, again) }),
  });
  return await tracedSubmit(client, { ...order, ...(reuse.length > 0 && { reuse }) }, traces);
}

const payloadHashOf = (run: string, { failed, job = "", fromStep, script }: Again): string => {
  const edited = script === undefined ? "" : createHash("sha256").update(script).digest("hex");
  return `${run} ${failed} ${job} ${fromStep ?? ""} ${edited}`.trimEnd();
};

/** `rules` are those that planners have: equal specs come of equal rules. */
type Before = {
  readonly view: JobView;
  readonly record: RunRecord;
  readonly stored: StoredRun;
  readonly rules: PlanRules;
};

async function reusedOf(before: Before, again: Again, blobs: BlobStore): Promise<readonly Reuse[]> {
  if (!again.failed && again.job === undefined) return [];
  const { stages, tasks } = before.view;
  const { from } = before.record;
  // a task's id names its stage there
  const repeated = repeatedStages(stages, tasks, from ? { ...again, failed: false, job: from.job } : again);
  const reuse: Reuse[] = [];
  for (const stage of stages) {
    // a stage behind a repeated one is repeated whole; of one that failed, the cells that did not
    const isBehind = stage.needs.some((need) => repeated.has(need));
    const isNamed = again.job !== undefined && repeated.has(stage.stage);
    if (isBehind || (isNamed && !from) || stage.name === conclusionStage || stage.phase === "SKIPPED") continue;
    const plan = await withShortSpecs(
      planStage(await inputsOf(stage, before, blobs), before.record, before.rules),
      blobs,
    );
    const specs = new Map(
      plan.kind === "tasks" ? plan.sets?.flatMap((set) => (set.tasks ?? []).map(({ key, spec }) => [key, spec])) : [],
    );
    for (const task of tasks) {
      const spec = specs.get(task.key);
      if (task.stage !== stage.stage || task.planning || !task.result || spec === undefined) continue;
      if (isNamed && task.key === from?.key) continue;
      const isKept = (again.job !== undefined && !isNamed) || readCellResult(task.result.payload)?.result === "success";
      if (isKept) reuse.push({ stage: stage.name, key: task.key, spec, result: task.result });
    }
  }
  return reuse;
}

/** By its name in the file; all jobs that a call leads to go by the call's name, too. */
const isNamed = ({ name }: StageView, job: string): boolean =>
  name === job || name.startsWith(`${job}/`) || name === job.replaceAll(" / ", "/");

/** Those that are asked for, and all that need them. */
function repeatedStages(
  stages: readonly StageView[],
  tasks: readonly TaskView[],
  { failed, job }: Again,
): ReadonlySet<number> {
  const hasFailed = ({ stage, phase }: StageView): boolean =>
    phase === "FAILED" ||
    phase === "CANCELLED" ||
    tasks.some((task) => task.stage === stage && !task.planning && !isSuccess(task));
  const named = stages.filter((stage) => (job === undefined ? failed && hasFailed(stage) : isNamed(stage, job)));
  if (job !== undefined && named.length === 0) {
    const known = stages.map(({ name }) => name).filter((name) => name !== conclusionStage);
    throw new Fault("not-found", "find the job", { job, known: known.join(", ") });
  }
  const repeated = new Set(named.map(({ stage }) => stage));
  for (const stage of stages)
    // needs are all ancestors, so one pass finds them
    if (stage.needs.some((need) => named.some((one) => one.stage === need))) repeated.add(stage.stage);
  return repeated;
}

const isSuccess = ({ result }: TaskView): boolean =>
  result !== undefined && readCellResult(result.payload)?.result === "success";
