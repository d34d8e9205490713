/** Pure: what the task of one cell remembers, and the job that the runner makes of it. */
import { Fault } from "#base/fault.ts";
import type { OnRunnerLoss } from "#doors/ci/workflow/compile/millrace.ts";
import type { CallJob, Job } from "#doors/ci/workflow/compile/model.ts";
import { blanket, type Permissions } from "#doors/ci/workflow/compile/permissions.ts";
import type { Dictionary } from "#doors/ci/workflow/expression/value.ts";
import { calledFrame, calledSecrets } from "#doors/ci/workflow/plan/called.ts";
import {
  cellContexts,
  type CellPlan,
  cellPlans,
  type Frame,
  jobContexts,
  type JobEnd,
  type JobFacts,
} from "#doors/ci/workflow/plan/job-plan.ts";
import { leavesOf } from "#doors/ci/workflow/plan/leaves.ts";
import { jobSpecOf, type JobSpec } from "#doors/ci/run/spec.ts";
import { frameOf, workflowOf } from "./run-frame.ts";
import { withScript } from "./runs/edited-step.ts";
import type { RunRecord, StoredRun } from "./runs/record.ts";

export type CellTask = {
  readonly run: StoredRun;
  /** The name of its leaf. */
  readonly job: string;
  /** Its cell, behind those of the jobs that call it, if there are any. */
  readonly cells: readonly number[];
  /** What was known when it was planned: for the jobs that call it, then for its own. */
  readonly ends: readonly Ends[];
  /** Its failure stops its siblings. */
  readonly fails: boolean;
  /** It asks for containers: no sandbox is around the program that starts them. */
  readonly hasContainers?: boolean;
  /** It does not begin at its first step: the record says where. */
  readonly goesOn?: boolean;
  /** What becomes of it when its runner is lost; left out: as its node says. */
  readonly onRunnerLoss?: OnRunnerLoss;
};
type Ends = readonly (readonly [id: string, end: JobEnd["result"], outputs: Readonly<Record<string, string>>])[];

/** Outputs are kept of those jobs only that a job names itself: others cannot see them. */
export function endsOf({ ends }: JobFacts, { needs }: Job): Ends {
  const needed = new Set(needs.map((need) => need.id.toLowerCase()));
  return [...ends].map(([id, { result, outputs }]) => [id, result, needed.has(id) ? Object.fromEntries(outputs) : {}]);
}

/** Of files that say nothing: it reads. A job gets an identity only if it asks for one. */
const unsaid = blanket("read");

const nameLengthMax = 200;

/** CI-61: `caller / called`. */
export const nameBelow = (calls: readonly CellPlan[], { name }: CellPlan): string =>
  [...calls.map((call) => call.name), name].join(" / ").slice(0, nameLengthMax);

/** The specification of the job that a task is, and what it may know. */
export function cellOf(
  task: CellTask,
  record: RunRecord,
): {
  readonly spec: JobSpec;
  readonly cell: CellPlan;
  readonly fails: boolean;
  /** What its token may do (CI-62). */
  readonly permissions: Permissions;
  /** Of the secrets of the run, those that its callers pass on to it. */
  readonly secrets: (all: ReadonlyMap<string, string>) => ReadonlyMap<string, string>;
} {
  const workflow = workflowOf(record);
  const leaf = leavesOf(workflow).find(({ name }) => name === task.job);
  if (!leaf) throw new Fault("corrupt", "read a CI task", { job: task.job });
  let frame = frameOf(record, workflow);
  let permissions = workflow.permissions ?? unsaid;
  const calls: { readonly job: CallJob; readonly contexts: Dictionary; readonly cell: CellPlan }[] = [];
  for (const [at, job] of leaf.callers.entries()) {
    const { cell, contexts } = cellAt(job, frame, task, at);
    calls.push({ job, contexts, cell });
    frame = calledFrame(job, frame, contexts);
    permissions = frame.workflow.permissions ?? job.permissions ?? permissions;
  }
  const { cell, contexts } = cellAt(leaf.job, frame, task, leaf.callers.length);
  const named = {
    ...cell,
    name: nameBelow(
      calls.map((call) => call.cell),
      cell,
    ),
  };
  const spec = jobSpecOf(leaf.job, named, frame, contexts);
  return {
    spec: task.goesOn && record.from ? withScript(spec, record.from) : spec,
    cell: named,
    fails: task.fails,
    permissions: leaf.job.permissions ?? permissions,
    secrets: (all) => calls.reduce((held, call) => calledSecrets(call.job, call.contexts, held), all),
  };
}

function cellAt(
  job: Job,
  frame: Frame,
  task: CellTask,
  at: number,
): { readonly cell: CellPlan; readonly contexts: Dictionary } {
  const known = (task.ends[at] ?? []).map(
    ([id, result, outputs]) => [id, { result, outputs: new Map(Object.entries(outputs)) }] as const,
  );
  const facts: JobFacts = { ends: new Map(known), isCancelled: false };
  const cell = cellPlans(job, frame, facts).find(({ index }) => index === task.cells[at]);
  if (!cell) throw new Fault("corrupt", "read a CI task", { job: task.job, cell: task.cells.join(".") });
  return { cell, contexts: cellContexts(jobContexts(job, frame, facts), cell) };
}
