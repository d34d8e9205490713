/**
 * Pure: a run becomes a kernel job. Each job of the workflow is a stage that waits for all its ancestors, whatever
 * becomes of them, and is planned when they have ended: its condition and its matrix are evaluated from their results
 * (`planJob`, which local runs use as well). A last stage says what the whole run came to.
 *
 * P1 A plan depends on the record and on results only, so that planned again a stage is the same.
 * P2 A cell that failed commits, too: its result and outputs are what later jobs see. Only where siblings are to be
 *    stopped does its task fail, because that is what the kernel stops siblings for.
 */
import { createHash } from "node:crypto";
import type { Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import type { LockSpec, Plan, PlanSpec, StageSpec, TaskPlan, TaskSet, TaskTemplate } from "#kernel/model/model.ts";
import type { PlanInputs } from "#kernel/read/query.ts";
import type { Order } from "#shard/client/client.ts";
import { compile } from "#doors/ci/workflow/compile/compile.ts";
import { ancestorsOf } from "#doors/ci/workflow/compile/jobs.ts";
import type { Job, NormalJob, Workflow } from "#doors/ci/workflow/compile/model.ts";
import { Dictionary, valueOf } from "#doors/ci/workflow/expression/value.ts";
import { type CellEnd, endOf } from "#doors/ci/workflow/plan/graph.ts";
import {
  cellContexts,
  type CellPlan,
  concurrencyOf,
  type Frame,
  jobContexts,
  type JobEnd,
  type JobFacts,
  planJob,
} from "#doors/ci/workflow/plan/job-plan.ts";
import { jobSpecOf, type JobSpec } from "#doors/ci/run/spec.ts";
import { type CellResult, readCellResult } from "./result.ts";
import type { RunRecord, StoredRun } from "./runs/record.ts";
import { tagsOf } from "./runs/tags.ts";

export const door = "ci";
export const taskLabel = "door=ci";
export const planLabel = "plan=ci/1";
/** Of nodes that run jobs in a sandbox: what callers start who are not operators asks for it. */
export const sandboxLabel = "isolation=sandbox";
export const kinds = { job: "ci.job", stage: "ci.stage", conclusion: "ci.conclusion" } as const;

export type RunWishes = {
  readonly tenant: string;
  readonly priority?: number | undefined;
  /** Of the event, the file and the commit: the same event never makes a second run. */
  readonly key?: string | undefined;
  /** What a repeated request with the same key must agree in; left out: all of the run. */
  readonly payloadHash?: string | undefined;
  /** Everything of a repository is decided in one shard: its locks and request keys. */
  readonly shardKey: string;
};

/** No workflow's job has this name: ids begin with a letter or one `_`. */
export const conclusionStage = "__conclusion";

const hourMs = 3_600_000;
const runMsMax = 35 * 24 * hourMs;
const queueMsMax = 24 * hourMs;
const minuteMs = 60_000;
const attemptMsMax = 5 * 24 * hourMs;
const waitingRunsMax = 100;
const seriesLengthMax = 200;
const stopMsMax = 30 * minuteMs;
/** Of the time that a cancelled cell has to stop, its worker keeps this much for itself. */
export const stopMarginMs = 15_000;

/** What the task of one cell remembers; the runner makes the job's specification of it. */
export type CellTask = {
  readonly run: StoredRun;
  readonly job: string;
  readonly index: number;
  readonly ends: Ends;
};
type Ends = readonly (readonly [id: string, end: JobEnd["result"], outputs: Readonly<Record<string, string>>])[];

export function planRun(
  record: RunRecord,
  { stored, digest }: { readonly stored: StoredRun; readonly digest: Digest },
  { tenant, priority = 0, key, payloadHash, shardKey }: RunWishes,
): Order {
  const workflow = workflowOf(record);
  const { jobs } = workflow;
  const called = jobs.find((job) => job.kind === "call");
  if (called)
    throw new Fault("invalid", "plan the run", { job: called.id, why: "called workflows run locally only, so far" });
  const spec = JSON.stringify(stored);
  const conclusion: StageSpec = {
    name: conclusionStage,
    needs: jobs.map((_job, index) => index),
    after: "end",
    plan: planSpec(kinds.conclusion),
    failFast: false,
    mayFail: false,
    parallelMax: 0,
  };
  return {
    shardKey,
    tenant,
    door,
    name: stored.about.title,
    payloadHash: payloadHash ?? createHash("sha256").update(spec).digest("hex"),
    priority,
    spec,
    deadlineMs: runMsMax,
    stages: [...jobs.map((job) => stageOf(job, jobs)), conclusion],
    ...runLock(workflow, record),
    tags: tagsOf(stored.about, digest),
    tracked: true,
    series: stored.about.path.slice(0, seriesLengthMax),
    ...(key !== undefined && { requestKey: key }),
  };
}

/** Needs are all ancestors: success() looks at them, and a plan sees the results of its needs only (CI-3). */
function stageOf(job: Job, jobs: readonly Job[]): StageSpec {
  const ancestors = new Set(ancestorsOf(job, jobs));
  return {
    name: job.id,
    needs: jobs.flatMap((other, index) => (ancestors.has(other.id) ? [index] : [])),
    after: "end",
    plan: planSpec(kinds.stage),
    // these two the plan decides, which knows what their expressions come to
    failFast: false,
    parallelMax: 0,
    mayFail: true, // the last stage says what the run came to
  };
}

const planSpec = (kind: string): PlanSpec => ({
  kind,
  requires: [planLabel],
  leaseMs: 10_000,
  attemptsMax: 20,
  deadlineMs: runMsMax,
});

/** CI-60: at most one run of a group runs; those behind it wait, one or a hundred of them. */
function runLock(workflow: Workflow, record: RunRecord): { readonly lock?: LockSpec } {
  const { github, vars, inputs } = frameOf(record);
  const contexts = new Dictionary([
    ["github", github],
    ["vars", vars],
    ["inputs", inputs],
  ]);
  const { concurrency } = concurrencyOf(workflow.concurrency, { contexts });
  return concurrency ? { lock: lockOf(concurrency, record) } : {};
}

/** Group names are long and in any case; lock names are neither. */
function lockOf(
  { group, cancelsInProgress, queue }: NonNullable<CellPlan["concurrency"]>,
  { source }: RunRecord,
): LockSpec {
  const hash = createHash("sha256").update(group.toLowerCase()).digest("hex").slice(0, 16);
  const shown = group.replaceAll(/[^\x21-\x7e]/g, "_").slice(0, 100);
  return {
    name: `ci ${source?.repository ?? ""} ${shown} ${hash}`,
    limit: 1,
    queueMax: queue === "max" ? waitingRunsMax : 1,
    cancelInProgress: cancelsInProgress,
  };
}

/** What becomes of one job of the workflow. */
export function planStage(inputs: PlanInputs, record: RunRecord): Plan {
  const stored = JSON.parse(inputs.spec) as StoredRun;
  const frame = frameOf(record);
  const job = frame.workflow.jobs.find((one) => one.id === inputs.stage);
  if (!job || job.kind === "call") return { kind: "fail", reason: `the workflow has no job ${inputs.stage}` };
  const facts = factsOf(inputs);
  const plan = planJob(job, frame, facts);
  if (plan.kind === "skip") return { kind: "skip", reason: plan.why };
  if (plan.kind === "fail") return { kind: "fail", reason: plan.message };
  const needed = new Set(job.needs.map((need) => need.id.toLowerCase()));
  const ends = [...facts.ends].map(
    ([id, end]) => [id, end.result, needed.has(id) ? Object.fromEntries(end.outputs) : {}] as const,
  );
  const [first] = plan.cells;
  const sets = taskSets(job, plan.cells, { run: stored, ends, requires: record.requires ?? [] });
  return {
    kind: "tasks",
    sets,
    decides: {
      failFast: job.strategy !== undefined && (first?.failFast ?? true),
      parallelMax: plan.cells.length > (first?.maxParallel ?? 0) ? (first?.maxParallel ?? 0) : 0,
      ...(first?.concurrency && { lock: lockOf(first.concurrency, record) }),
    },
  };
}

/** Cells that ask for the same are one set: labels and timeouts may differ from cell to cell. */
function taskSets(
  job: NormalJob,
  cells: readonly CellPlan[],
  { run, ends, requires }: { readonly run: StoredRun; readonly ends: Ends; readonly requires: readonly string[] },
): readonly TaskSet[] {
  const sets = new Map<string, { readonly template: TaskTemplate; readonly tasks: TaskPlan[] }>();
  for (const cell of cells) {
    const template = templateOf(cell, requires);
    const key = JSON.stringify(template);
    const set = sets.get(key) ?? { template, tasks: [] };
    sets.set(key, set);
    const task: CellTask = { run, job: job.id, index: cell.index, ends };
    set.tasks.push({ key: `${cell.index} ${cell.name}`, spec: JSON.stringify(task) });
  }
  return [...sets.values()];
}

function templateOf(cell: CellPlan, always: readonly string[]): TaskTemplate {
  const minutes = cell.timeoutMinutes + cell.cancelTimeoutMinutes;
  const labels = cell.labels.map((label) => `runner=${label.toLowerCase()}`);
  return {
    kind: kinds.job,
    requires: [...new Set([taskLabel, ...always, ...labels])].toSorted(),
    leaseMs: 30_000,
    attemptsMax: 3,
    retryOn: "infrastructure",
    backoffMs: 1_000,
    backoffMsMax: 60_000,
    queueMs: queueMsMax,
    attemptMs: Math.min(minutes * minuteMs, attemptMsMax),
    effects: "outside",
    speculate: false,
    graceMs: 0,
    // steps that run on cancelled() have their time, and a moment to report it
    stopMs: Math.min(cell.cancelTimeoutMinutes * minuteMs, stopMsMax) + stopMarginMs,
  };
}

/** The run succeeded when none of its jobs failed; skipped ones count as passed (CI-5). */
export function planConclusion(inputs: PlanInputs): Plan {
  const results = [...factsOf(inputs).ends].map(([id, { result }]) => ({ id, result }));
  const named = (wanted: string): string =>
    results
      .filter(({ result }) => result === wanted)
      .map(({ id }) => id)
      .join(", ");
  if (named("failure") !== "") return { kind: "fail", reason: `failed: ${named("failure")}` };
  if (named("cancelled") !== "") return { kind: "fail", reason: `cancelled: ${named("cancelled")}` };
  return { kind: "skip", reason: "every job passed or was skipped" };
}

/** What the needs came to, by lower-case id. */
export function factsOf({ needs, results, cancelled }: PlanInputs): JobFacts {
  const ends = new Map<string, JobEnd>();
  for (const { stage, name, phase } of needs) {
    const cells = results.flatMap((one) => {
      const outcome = one.result ?? one.failure?.result;
      const result = one.stage === stage && outcome ? readCellResult(outcome.payload) : undefined;
      return result ? [cellEnd(name, one.key, result)] : [];
    });
    ends.set(name.toLowerCase(), stageEnd(phase, cells));
  }
  return { ends, isCancelled: cancelled !== undefined };
}

function cellEnd(jobId: string, key: string, { result, outputs, isFailureAllowed }: CellResult): CellEnd {
  const counted = result === "failure" && isFailureAllowed ? "success" : result;
  return { jobId, index: cellIndex(key), result: counted, outputs: new Map(Object.entries(outputs)) };
}

/** A cell's key is its number and its name. */
export const cellIndex = (key: string): number => Number.parseInt(key, 10);

function stageEnd(phase: PlanInputs["needs"][number]["phase"], cells: readonly CellEnd[]): JobEnd {
  if (phase === "SKIPPED") return { result: "skipped", outputs: new Map() };
  const end = endOf(cells);
  if (phase === "FAILED") return { ...end, result: "failure" };
  return phase === "CANCELLED" ? { ...end, result: "cancelled" } : end;
}

/** The specification of the job that a task is, and whether its failure counts. */
export function cellOf(
  task: CellTask,
  record: RunRecord,
): { readonly spec: JobSpec; readonly cell: CellPlan; readonly fails: boolean } {
  const frame = frameOf(record);
  const job = frame.workflow.jobs.find((one) => one.id === task.job);
  if (job?.kind !== "job") throw new Fault("corrupt", "read a CI task", { job: task.job });
  const ends = new Map(
    task.ends.map(([id, result, outputs]) => [id, { result, outputs: new Map(Object.entries(outputs)) }]),
  );
  const facts: JobFacts = { ends, isCancelled: false };
  const plan = planJob(job, frame, facts);
  const cell = plan.kind === "run" ? plan.cells.find(({ index }) => index === task.index) : undefined;
  if (!cell) throw new Fault("corrupt", "read a CI task", { job: task.job, cell: task.index });
  const contexts = cellContexts(jobContexts(job, frame, facts), cell);
  const fails = job.strategy !== undefined && cell.failFast && cell.total > 1 && !cell.isFailureAllowed;
  return { spec: jobSpecOf(job, cell, frame, contexts), cell, fails };
}

export function frameOf(record: RunRecord): Frame {
  return {
    workflow: workflowOf(record),
    github: valueOf(record.github) as Dictionary,
    vars: valueOf(record.vars) as Dictionary,
    inputs: valueOf(record.inputs) as Dictionary,
  };
}

/** By the name of each job: those that it names itself. */
export const needsIn = (record: RunRecord): ReadonlyMap<string, readonly string[]> =>
  new Map(workflowOf(record).jobs.map((job) => [job.id, job.needs.map((need) => need.id)]));

/** By the name of each job: all that must have ended before it. */
export function ancestorsIn(record: RunRecord): ReadonlyMap<string, ReadonlySet<string>> {
  const { jobs } = workflowOf(record);
  return new Map(jobs.map((job) => [job.id, new Set(ancestorsOf(job, jobs))]));
}

function workflowOf({ file }: RunRecord): Workflow {
  const compiled = compile(file);
  if (compiled.ok) return compiled.workflow;
  const why = compiled.problems.map(({ message }) => message).join("; ");
  throw new Fault("invalid", "compile the workflow", { file: file.path, why });
}
