/** The planners of runs: they bring what was stored apart, and the pure plan does the rest. */
import type { BlobStore } from "#blobs/store.ts";
import type { Plan, TaskPlan } from "#kernel/model/model.ts";
import type { PlanInputs } from "#kernel/read/query.ts";
import type { Planners } from "#worker/runner.ts";
import type { WorkClient } from "#shard/client/client.ts";
import type { CellTask } from "#doors/ci/cell-task.ts";
import type { gate, Stage } from "#doors/ci/environments/waiting.ts";
import { kinds, planConclusion, planStage } from "#doors/ci/plan.ts";
import { readCellResult } from "#doors/ci/result.ts";
import type { OnRunnerLoss } from "#doors/ci/workflow/compile/millrace.ts";
import type { EndedRun } from "#doors/ci/intake/run-ended.ts";
import { type StoredRun, readRun } from "./record.ts";
import { asksForFacts, runFacts, withRunFacts } from "./run-facts.ts";
import { keep, type Kept, recall } from "./texts.ts";

export type PlannerPorts = {
  /** Left out, plans do not know the run's id and number. */
  readonly client?: Pick<WorkClient, "job">;
  /** Whether a stage may begin; left out: it may. */
  readonly gate?: (stage: Stage) => ReturnType<typeof gate>;
  /** How long a runner may be silent. */
  readonly leaseMs?: number;
  /** What the cluster says about lost runners of a tenant's work. */
  readonly onRunnerLoss?: (tenant: string, requires: readonly string[]) => OnRunnerLoss;
  /** Returns when it is durable that the run has ended. */
  readonly ended?: (run: EndedRun) => Promise<void>;
};

export const ciPlanners = ({ client, gate, ended, leaseMs, onRunnerLoss }: PlannerPorts): Planners => ({
  [kinds.stage]: async (inputs, { blobs, task }) => {
    const stored = JSON.parse(inputs.spec) as StoredRun;
    const record = await readRun(blobs, stored);
    const known =
      client && asksForFacts(record) ? withRunFacts(record, await runFacts(client, task.jobId, stored.about)) : record;
    const whole = await withOutputs(inputs, blobs);
    const asks = planStage(whole, known).kind === "tasks" ? gate : undefined;
    const { tenant, jobId } = task;
    const found = await asks?.({ tenant, jobId, inputs: whole, record: known, about: stored.about });
    if (found && found.kind !== "open") return found;
    const ofCluster = onRunnerLoss && { onRunnerLoss: (labels: readonly string[]) => onRunnerLoss(tenant, labels) };
    const rules = { exclusive: new Set<string>(), ...found, leaseMs, ...ofCluster };
    return await withShortSpecs(planStage(whole, known, rules), blobs);
  },
  [kinds.conclusion]: async (inputs, { blobs, task }) => {
    const { about, ...stored } = JSON.parse(inputs.spec) as StoredRun;
    const record = await readRun(blobs, { about, ...stored });
    const plan = planConclusion(await withOutputs(inputs, blobs), record);
    if (!ended || !client) return plan;
    const failed = plan.kind === "fail" && !plan.reason.startsWith("cancelled") ? "failure" : "cancelled";
    const conclusion = plan.kind === "skip" ? "success" : failed;
    const { number } = await runFacts(client, task.jobId, about);
    await ended({ tenant: task.tenant, jobId: task.jobId, number, about, record, conclusion });
    return plan;
  },
});

/** Results with the outputs that were too long for them. */
export async function withOutputs(inputs: PlanInputs, blobs: BlobStore): Promise<PlanInputs> {
  const results = await Promise.all(
    inputs.results.map(async (one) => {
      const outcome = one.result ?? one.failure?.result;
      const read = outcome && readCellResult(outcome.payload);
      if (!outcome || read?.outputsBlob === undefined) return one;
      const outputs = await recall<Record<string, string>>(blobs, { blob: read.outputsBlob });
      return { ...one, result: { ...outcome, payload: JSON.stringify({ ...read, outputs }) } };
    }),
  );
  return { ...inputs, results };
}

/** A task whose spec is too long is told where it is. */
type KeptTask = Kept<CellTask>;

export async function withShortSpecs(plan: Plan, blobs: BlobStore): Promise<Plan> {
  if (plan.kind !== "tasks" || !plan.sets) return plan;
  const short = async (task: TaskPlan): Promise<TaskPlan> => {
    const kept: KeptTask = await keep(blobs, JSON.parse(task.spec) as CellTask, taskBytesMax);
    return { ...task, spec: JSON.stringify(kept) };
  };
  const sets = await Promise.all(
    plan.sets.map(async ({ template, tasks = [] }) => ({ template, tasks: await Promise.all(tasks.map(short)) })),
  );
  return { ...plan, sets };
}

const taskBytesMax = 48 * 1024;

export const readCellTask = async (spec: string, blobs: BlobStore): Promise<CellTask> =>
  await recall(blobs, JSON.parse(spec) as KeptTask);
