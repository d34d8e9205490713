/**
 * Pure: a run becomes a kernel job. Each job that has steps, of the workflow and of those that it calls, is a stage (a
 * leaf) that waits for all its ancestors, whatever becomes of them, and is planned when they have ended: its condition
 * and its matrix, and those of the jobs that call it, are evaluated from their results. Local runs decide with the same
 * functions. A last stage says what the whole run came to.
 *
 * P1 A plan depends on the record and on results only, so that planned again a stage is the same.
 * P2 A cell that failed commits, too: its result and outputs are what later jobs see. Only where siblings are to be
 *    stopped does its task fail, because that is what the kernel stops siblings for.
 */
import { createHash } from "node:crypto";
import type { Digest } from "#base/digest.ts";
import { Fault, isFault } from "#base/fault.ts";
import type {
  LockSpec,
  Plan,
  PlanDecides,
  PlanSpec,
  StageSpec,
  TaskPlan,
  TaskSet,
  TaskTemplate,
} from "#kernel/model/model.ts";
import type { PlanInputs } from "#kernel/read/query.ts";
import type { Order } from "#shard/client/client.ts";
import type { OnRunnerLoss } from "#doors/ci/workflow/compile/millrace.ts";
import type { Job, Workflow } from "#doors/ci/workflow/compile/model.ts";
import type { PlainValue } from "#doors/ci/workflow/expression/value.ts";
import type { CellPlan, Frame, JobFacts } from "#doors/ci/workflow/plan/job-plan.ts";
import { ancestorLeaves, type Leaf, leavesOf, missingCall, neededLeaves } from "#doors/ci/workflow/plan/leaves.ts";
import { type Known, type LeafEnd, type Level, Replay } from "#doors/ci/workflow/plan/replay.ts";
import { cellKey, cellNumbers } from "./cell-key.ts";
import { containersLabel, needsContainers, sharedContainersLabel } from "./containers/host.ts";
import { groupLabel } from "./queues.ts";
import { type CellTask, endsOf, nameBelow } from "./cell-task.ts";
import { groupOfRun, groupOfStage, lockOf } from "./locks.ts";
import { attemptsOf, lossOf } from "./attempts.ts";
import { frameOf, workflowOf } from "./run-frame.ts";
import { readCellResult } from "./result.ts";
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
  /** Stands for the run's id while it has none: groups that are made of it have one member. */
  readonly unique?: string | undefined;
};

/** No workflow's job has this name: ids begin with a letter or one `_`. */
export const conclusionStage = "__conclusion";

const hourMs = 3_600_000;
const runMsMax = 35 * 24 * hourMs;
const queueMsMax = 24 * hourMs;
const minuteMs = 60_000;
const attemptMsMax = 5 * 24 * hourMs;
const seriesLengthMax = 200;
/** Of one job, with the matrices of all that call it. */
const cellsMax = 1_000;
const leaseMsDefault = 30_000;
const stopMsMax = 30 * minuteMs;
/** Of the time that a cancelled cell has to stop, its worker keeps this much for itself. */
export const stopMarginMs = 15_000;

export function planRun(
  record: RunRecord,
  { stored, digest }: { readonly stored: StoredRun; readonly digest: Digest },
  { tenant, priority = 0, key, payloadHash, shardKey, unique = key ?? "" }: RunWishes,
): Order {
  const workflow = workflowOf(record);
  const missing = missingCall(workflow);
  if (missing)
    throw new Fault("invalid", "plan the run", { job: missing.id, why: `the workflow ${missing.uses} is not at hand` });
  const group = groupOfRun(frameOf(withUnique(record, unique), workflow));
  const stages = stagesOf(workflow);
  const spec = JSON.stringify(stored);
  const conclusion: StageSpec = {
    name: conclusionStage,
    needs: stages.map((_stage, index) => index),
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
    stages: [...stages, conclusion],
    ...(group && { lock: lockOf(group, record.source?.repository) }),
    tags: tagsOf(stored.about, digest),
    tracked: true,
    // a run that repeats another has its number
    ...(stored.about.again === undefined && { series: stored.about.path.slice(0, seriesLengthMax) }),
    ...(key !== undefined && { requestKey: key }),
  };
}

function withUnique(record: RunRecord, unique: string): RunRecord {
  const github = record.github as Readonly<Record<string, PlainValue>>;
  return { ...record, github: { ...github, run_id: unique, run_number: unique, run_attempt: "1" } };
}

/** Needs are all ancestors: success() looks at them, and a plan sees the results of its needs only (CI-3). */
function stagesOf(workflow: Workflow): readonly StageSpec[] {
  const ancestors = ancestorLeaves(workflow);
  const leaves = leavesOf(workflow);
  const numbers = new Map(leaves.map(({ name }, index) => [name, index]));
  return leaves.map(({ name }) => ({
    name,
    needs: (ancestors.get(name) ?? []).flatMap((need) => numbers.get(need) ?? []).toSorted((a, b) => a - b),
    after: "end",
    plan: planSpec(kinds.stage),
    // these two the plan decides, which knows what their expressions come to
    failFast: false,
    parallelMax: 0,
    mayFail: true, // the last stage says what the run came to
  }));
}

const planSpec = (kind: string): PlanSpec => ({
  kind,
  requires: [planLabel],
  leaseMs: 10_000,
  attemptsMax: 20,
  deadlineMs: runMsMax,
});

/** What is known when a stage is planned besides its run: environments that one job at a time deploys to. */
export type PlanRules = {
  readonly exclusive: ReadonlySet<string>;
  /** How long a runner may be silent; left out: as usual. */
  readonly leaseMs?: number | undefined;
  /** What the cluster says about a lost runner of work that asks for these labels. */
  readonly onRunnerLoss?: (requires: readonly string[]) => OnRunnerLoss;
};

/** What becomes of one job of the workflow, or of one that it calls. */
export function planStage(inputs: PlanInputs, record: RunRecord, rules?: PlanRules): Plan {
  const placed = placesOfStage(inputs, record);
  if ("kind" in placed) return placed;
  const { leaf, planned } = placed;
  try {
    const decides = decidesOf(leaf, planned, record);
    const sets = taskSets(leaf, planned, { inputs, record, stops: decides.failFast, rules });
    return { kind: "tasks", sets, decides };
  } catch (error) {
    if (!isFault(error, "invalid")) throw error;
    return { kind: "fail", reason: error.message };
  }
}

/** What the cells of a stage deploy to, if it is going to run. */
export function environmentsOfStage(
  inputs: PlanInputs,
  record: RunRecord,
): readonly NonNullable<CellPlan["environment"]>[] {
  const placed = placesOfStage(inputs, record);
  const all = "kind" in placed ? [] : placed.planned.flatMap(({ cells }) => cells);
  const named = all.flatMap(({ environment }) =>
    environment ? [[environment.name.toLowerCase(), environment] as const] : [],
  );
  return [...new Map(named).values()];
}

/** Where the job of a stage runs, and in which cells; or why it does not run. */
function placesOfStage(
  inputs: PlanInputs,
  record: RunRecord,
): Plan | { readonly leaf: Leaf; readonly planned: readonly Planned[] } {
  const workflow = workflowOf(record);
  const leaf = leavesOf(workflow).find(({ name }) => name === inputs.stage);
  if (!leaf) return { kind: "fail", reason: `the workflow has no job ${inputs.stage}` };
  const replay = new Replay(frameOf(record, workflow), knownOf(inputs));
  const places = replay.placesOf(leaf.callers);
  const skipped = [...places.skipped];
  const failed = [...places.failed];
  const planned: Planned[] = [];
  let tasks = 0;
  for (const level of places.levels) {
    const plan = replay.plan(level, leaf.job);
    tasks += plan.kind === "run" ? plan.cells.length : 0;
    if (tasks > cellsMax) return { kind: "fail", reason: `the job would run in more than ${cellsMax} cells` };
    if (plan.kind === "skip") skipped.push(plan.why);
    else if (plan.kind === "fail") failed.push(plan.message);
    else planned.push({ level, cells: plan.cells, facts: [...level.facts, replay.facts(level, leaf.job)] });
  }
  // those that cannot be planned count as failed when the run is concluded, beside those that can
  if (planned.length === 0 && failed.length > 0) return { kind: "fail", reason: inWords(failed) };
  if (planned.length === 0) return { kind: "skip", reason: inWords(skipped) };
  return { leaf, planned };
}

const inWords = (reasons: readonly string[]): string => [...new Set(reasons)].join("; ").slice(0, 2_000);
/** Whose condition decided about a stage: its own, or that of a job that calls it; at the first place of several. */
export function decidingJob(
  inputs: PlanInputs,
  record: RunRecord,
): { readonly job: Job; readonly frame: Frame; readonly facts: JobFacts } | undefined {
  const workflow = workflowOf(record);
  const leaf = leavesOf(workflow).find(({ name }) => name === inputs.stage);
  if (!leaf) return undefined;
  const known = knownOf(inputs);
  const replay = new Replay(frameOf(record, workflow), known);
  const at = (level: Level, job: Job) => ({
    job,
    frame: level.frame,
    facts: replay.facts(level, job, known.isCancelled),
  });
  let level = replay.top;
  for (const [depth, job] of leaf.callers.entries()) {
    const [inner] = replay.placesOf(leaf.callers.slice(0, depth + 1)).levels;
    if (!inner) return at(level, job);
    level = inner;
  }
  return at(level, leaf.job);
}

/** A job that runs at one place, in its cells. */
type Planned = { readonly level: Level; readonly cells: readonly CellPlan[]; readonly facts: readonly JobFacts[] };

function decidesOf(
  { job, callers }: Leaf,
  planned: readonly Planned[],
  { source }: RunRecord,
): PlanDecides & { readonly failFast: boolean } {
  const [first] = planned;
  const [cell] = first?.cells ?? [];
  const calls = first?.level.cells ?? [];
  const total = planned.reduce((sum, { cells }) => sum + cells.length, 0);
  const parallel = calls.reduce((product, { maxParallel }) => product * maxParallel, cell?.maxParallel ?? 1);
  const isOwn = job.strategy === undefined || cell?.failFast !== false;
  const isTheirs = planned.length === 1 || calls.every(({ failFast }) => failFast);
  const group = first && groupOfStage(first.level, callers, cell);
  return {
    failFast: total > 1 && isOwn && isTheirs,
    parallelMax: total > parallel ? parallel : 0,
    ...(group && { lock: lockOf(group, source?.repository) }),
  };
}

/** Cells that ask for the same are one set: labels and timeouts may differ from cell to cell. */
function taskSets(
  leaf: Leaf,
  planned: readonly Planned[],
  {
    inputs,
    record,
    stops,
    rules,
  }: {
    readonly inputs: PlanInputs;
    readonly record: RunRecord;
    readonly stops: boolean;
    readonly rules: PlanRules | undefined;
  },
): readonly TaskSet[] {
  const run = JSON.parse(inputs.spec) as StoredRun;
  const ofContainers = containerLabels(leaf.job, record.requires ?? []);
  const hasContainers = ofContainers.length > 0;
  const sets = new Map<string, { readonly template: TaskTemplate; readonly tasks: TaskPlan[] }>();
  for (const { level, cells, facts } of planned) {
    const ends = facts.map((one, at) => endsOf(one, leaf.callers[at] ?? leaf.job));
    for (const cell of cells) {
      const lock = lockOfEnvironment(cell, rules, record.source?.repository);
      const leaseMs = rules?.leaseMs ?? leaseMsDefault;
      const requires = requiresOf(cell, [...(record.requires ?? []), ...ofContainers]);
      const onRunnerLoss = lossOf(leaf.job, rules?.onRunnerLoss?.(requires));
      const template = { ...templateOf(cell, requires, onRunnerLoss), leaseMs, ...(lock && { lock }) };
      const text = JSON.stringify(template);
      const set = sets.get(text) ?? { template, tasks: [] };
      sets.set(text, set);
      const at = [...level.cells, cell].map(({ index }) => index);
      const key = cellKey(at, nameBelow(level.cells, cell));
      const goesOn = record.from?.job === leaf.name && record.from.key === key;
      const task: CellTask = {
        run,
        job: leaf.name,
        cells: at,
        ends,
        fails: stops && !cell.isFailureAllowed,
        ...(hasContainers && { hasContainers }),
        ...(goesOn && { goesOn }),
        ...(onRunnerLoss !== undefined && { onRunnerLoss }),
      };
      set.tasks.push({ key, spec: JSON.stringify(task) });
    }
  }
  return [...sets.values()];
}

/** An engine of containers is as good as root: callers who are not operators need a machine that is theirs. */
function containerLabels(job: Job, requires: readonly string[]): readonly string[] {
  if (job.kind === "call" || !needsContainers(job)) return [];
  return [requires.includes(sandboxLabel) ? sharedContainersLabel : containersLabel];
}

/** Each cell waits for its environment by itself; the group of its job is the lock of the whole stage. */
function lockOfEnvironment(
  { environment }: CellPlan,
  rules: PlanRules | undefined,
  repository: string | undefined,
): LockSpec | undefined {
  if (!environment || !rules?.exclusive.has(environment.name.toLowerCase())) return undefined;
  const group = `environment ${environment.name}`;
  return lockOf({ group, cancelsInProgress: false, queue: "max" }, repository);
}

function requiresOf({ labels, group }: CellPlan, always: readonly string[]): readonly string[] {
  const asked = labels.map((label) => `runner=${label.toLowerCase()}`);
  if (group !== undefined) asked.push(groupLabel(group));
  return [...new Set([taskLabel, ...always, ...asked])].toSorted();
}

function templateOf(
  cell: CellPlan,
  requires: readonly string[],
  onRunnerLoss: OnRunnerLoss | undefined,
): Omit<TaskTemplate, "leaseMs"> {
  const minutes = cell.timeoutMinutes + cell.cancelTimeoutMinutes;
  return {
    kind: kinds.job,
    requires,
    ...attemptsOf(cell.retry, onRunnerLoss),
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
export function planConclusion(inputs: PlanInputs, record: RunRecord): Plan {
  const frame = frameOf(record, workflowOf(record));
  const replay = new Replay(frame, knownOf(inputs));
  const results = frame.workflow.jobs.map((job) => ({ id: job.id, result: replay.end(replay.top, job).result }));
  const named = (wanted: string): string =>
    results
      .filter(({ result }) => result === wanted)
      .map(({ id }) => id)
      .join(", ");
  if (named("failure") !== "") return { kind: "fail", reason: `failed: ${named("failure")}` };
  if (named("cancelled") !== "") return { kind: "fail", reason: `cancelled: ${named("cancelled")}` };
  return { kind: "skip", reason: "every job passed or was skipped" };
}

/** What the needs came to, by name. */
function knownOf({ needs, results, cancelled }: PlanInputs): Known {
  const leaves = new Map<string, LeafEnd>();
  for (const { stage, name, phase } of needs) {
    const cells = results.flatMap((one) => (one.stage === stage ? (cellEnd(name, one) ?? []) : []));
    const ended = phase === "FAILED" || phase === "SKIPPED" || phase === "CANCELLED" ? phase : "COMPLETED";
    leaves.set(name, { phase: ended, cells });
  }
  return { leaves, isCancelled: cancelled !== undefined };
}

function cellEnd(jobId: string, one: PlanInputs["results"][number]): LeafEnd["cells"][number] | undefined {
  const outcome = one.result ?? one.failure?.result;
  const read = outcome && readCellResult(outcome.payload);
  const callers = cellNumbers(one.key);
  const index = callers.pop() ?? 0;
  const shared = { jobId, index, callers, outputs: new Map(Object.entries(read?.outputs ?? {})) };
  if (read) {
    const isCounted = read.result !== "failure" || !read.isFailureAllowed;
    return { ...shared, result: isCounted ? read.result : "success" };
  }
  // CI-14: a task that failed without an attempt was not taken within a day: it is cancelled
  if (one.phase === "FAILED" && one.failure) return { ...shared, result: "failure" };
  return one.phase === "FAILED" || one.phase === "CANCELLED" ? { ...shared, result: "cancelled" } : undefined;
}

/** By the name of each leaf: those that it, or a job that calls it, names itself. */
export const needsIn = (record: RunRecord): ReadonlyMap<string, readonly string[]> => neededLeaves(workflowOf(record));

/** By the name of each leaf: all that must have ended before it. */
export const ancestorsIn = (record: RunRecord): ReadonlyMap<string, ReadonlySet<string>> =>
  new Map([...ancestorLeaves(workflowOf(record))].map(([name, names]) => [name, new Set(names)]));
