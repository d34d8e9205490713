/**
 * What becomes of one job once everything it needs has ended: run, in how many cells, or skip, and why. Pure: the
 * local runner calls it for each job, and a planner calls it for each stage of a run.
 */
import { ancestorsOf } from "#doors/ci/workflow/compile/jobs.ts";
import type { CallJob, Job, NormalJob, Workflow } from "#doors/ci/workflow/compile/model.ts";
import type { JobRetry } from "#doors/ci/workflow/compile/millrace.ts";
import type { Scope } from "#doors/ci/workflow/expression/evaluate.ts";
import { type ConditionPart, explain } from "#doors/ci/workflow/expression/explain.ts";
import { parseExpression } from "#doors/ci/workflow/expression/parse.ts";
import type { ExpressionFunction } from "#doors/ci/workflow/expression/functions.ts";
import { Dictionary, isArray, textOf, type Value } from "#doors/ci/workflow/expression/value.ts";
import { places } from "#doors/ci/workflow/schema/places.ts";
import { entryOf, type Node } from "#doors/ci/workflow/yaml/node.ts";
import { cellName, cellsOf, MatrixFault } from "./matrix.ts";
import {
  conditionHolds,
  TemplateFault,
  templateBoolean,
  templateNumber,
  templateText,
  templateValue,
} from "./template.ts";

export type JobResult = "success" | "failure" | "cancelled" | "skipped";

export type JobEnd = { readonly result: JobResult; readonly outputs: ReadonlyMap<string, string> };

/** One level of workflows: the run itself, or a workflow that a job calls. */
export type Frame = {
  readonly workflow: Workflow;
  readonly github: Dictionary;
  readonly vars: Dictionary;
  readonly inputs: Dictionary;
};

export type JobFacts = {
  /** By lower-case id: what has ended. */
  readonly ends: ReadonlyMap<string, JobEnd>;
  readonly isCancelled: boolean;
};

export type CellPlan = {
  readonly index: number;
  readonly total: number;
  readonly name: string;
  readonly matrix: Dictionary | null;
  readonly failFast: boolean;
  readonly maxParallel: number;
  readonly isFailureAllowed: boolean;
  /** Undefined for a call. */
  readonly labels: readonly string[];
  readonly group?: string;
  readonly timeoutMinutes: number;
  readonly cancelTimeoutMinutes: number;
  /** How often it is tried again, and why; left out: when its runner is lost, as usual. */
  readonly retry?: JobRetry;
  /** Undefined where it asks for none. */
  readonly environment?: { readonly name: string; readonly url?: Node; readonly isDeployment: boolean };
  readonly concurrency?: {
    readonly group: string;
    readonly cancelsInProgress: boolean;
    readonly queue: "single" | "max";
  };
};

export type JobPlan =
  | { readonly kind: "run"; readonly cells: readonly CellPlan[] }
  | { readonly kind: "skip"; readonly why: string }
  | { readonly kind: "fail"; readonly message: string };

const timeoutMinutesDefault = 360;
const cancelTimeoutMinutesDefault = 5;

export function planJob(job: Job, frame: Frame, facts: JobFacts): JobPlan {
  try {
    const held = holds(job, frame, facts);
    if (!held.holds) return { kind: "skip", why: held.why };
    return { kind: "run", cells: cellPlans(job, frame, facts) };
  } catch (error) {
    if (error instanceof TemplateFault || error instanceof MatrixFault) return { kind: "fail", message: error.message };
    throw error;
  }
}

/** Whether a job's condition holds, and why not (CI-3 to CI-6). */
export function holds(job: Job, frame: Frame, facts: JobFacts): { readonly holds: boolean; readonly why: string } {
  const scope = { contexts: jobContexts(job, frame, facts), functions: statusFunctions(job, frame, facts) };
  if (conditionHolds(job.if, places.jobIf, scope)) return { holds: true, why: "" };
  const shown = job.if.source ?? "success()";
  const failing = ancestorsOf(job, frame.workflow.jobs).flatMap((id) => {
    const result = facts.ends.get(id.toLowerCase())?.result;
    return result === undefined || result === "success" ? [] : [`${id} was ${words[result]}`];
  });
  const because = facts.isCancelled ? "the run was cancelled" : failing.join(", ");
  return { holds: false, why: because === "" ? `if: ${shown} is false` : `if: ${shown} is false (${because})` };
}

/** What each part of a job's condition came to. */
export function explainJob(job: Job, frame: Frame, facts: JobFacts): ConditionPart {
  const scope = { contexts: jobContexts(job, frame, facts), functions: statusFunctions(job, frame, facts) };
  const ended = ancestorsOf(job, frame.workflow.jobs).flatMap((id) => {
    const result = facts.ends.get(id.toLowerCase())?.result;
    return result === undefined ? [] : [`${id} was ${words[result]}`];
  });
  const looked = facts.isCancelled ? "the run was cancelled" : ended.join(", ");
  return explain(parseExpression(job.if.expression, places.jobIf), scope, () => (looked === "" ? undefined : looked));
}

const words = { success: "successful", failure: "unsuccessful", cancelled: "cancelled", skipped: "skipped" } as const;

export function jobContexts(job: Job, frame: Frame, facts: JobFacts): Dictionary {
  return new Dictionary([
    ["github", frame.github],
    ["vars", frame.vars],
    ["inputs", frame.inputs],
    ["needs", needsContext(job, facts)],
  ]);
}

/** Only what a job names itself is in `needs` (CI-4). */
export function needsContext(job: Job, facts: JobFacts): Dictionary {
  return new Dictionary(
    job.needs.map((need) => {
      const end = facts.ends.get(need.id.toLowerCase());
      const outputs = new Dictionary(end?.outputs ?? []);
      return [
        need.id,
        new Dictionary([
          ["result", end?.result ?? null],
          ["outputs", outputs],
        ]),
      ] as const;
    }),
  );
}

function statusFunctions(job: Job, frame: Frame, facts: JobFacts): ReadonlyMap<string, ExpressionFunction> {
  const ancestors = ancestorsOf(job, frame.workflow.jobs);
  const resultsOf = (names: readonly Value[]): readonly (JobResult | undefined)[] => {
    const ids = names.length > 0 ? names.map((name) => textOf(name)) : ancestors;
    return ids.map((id) => facts.ends.get(id.toLowerCase())?.result);
  };
  return new Map<string, ExpressionFunction>([
    ["always", () => true],
    ["cancelled", () => facts.isCancelled],
    ["success", (...names) => !facts.isCancelled && resultsOf(names).every((result) => result === "success")],
    ["failure", (...names) => !facts.isCancelled && resultsOf(names).includes("failure")],
  ]);
}

/** Its cells, whether or not its condition holds. */
export function cellPlans(job: Job, frame: Frame, facts: JobFacts): readonly CellPlan[] {
  const contexts = jobContexts(job, frame, facts);
  const strategy = strategyOf(job.strategy, { contexts });
  const cells = strategy.matrix ? cellsOf(strategy.matrix) : [{ matrix: null, label: "" }];
  const maxParallel = strategy.maxParallel ?? cells.length;
  return cells.map(({ matrix, label }, index) => {
    const settings = { failFast: strategy.failFast, maxParallel, index, total: cells.length };
    const scope: Scope = { contexts: cellContexts(contexts, { matrix, ...settings }) };
    const name = job.name ? nameIn(job.name, scope, label) : cellName(job.id, label);
    return { ...settings, name, matrix, ...(job.kind === "job" ? jobSettings(job, scope) : callSettings(job, scope)) };
  });
}

export type StrategyFacts = Pick<CellPlan, "matrix" | "failFast" | "maxParallel" | "index" | "total">;

/** The contexts of one cell (CI-20). */
export function cellContexts(contexts: Dictionary, cell: StrategyFacts): Dictionary {
  const strategy = new Dictionary([
    ["fail-fast", cell.failFast],
    ["job-index", cell.index],
    ["job-total", cell.total],
    ["max-parallel", cell.maxParallel],
  ]);
  return new Dictionary([...contexts.entries(), ["strategy", strategy], ["matrix", cell.matrix]]);
}

/** A name of one's own is taken as it is when it says something of the matrix; otherwise the cell is added. */
function nameIn(node: Node, scope: Scope, label: string): string {
  const name = templateText(node, scope);
  return node.kind === "expression" ? cellName(name, "") : cellName(name, label);
}

function strategyOf(
  node: Node | undefined,
  scope: Scope,
): {
  readonly matrix: Dictionary | undefined;
  readonly failFast: boolean;
  readonly maxParallel: number | undefined;
} {
  if (!node) return { matrix: undefined, failFast: true, maxParallel: undefined };
  const value = templateValue(node, scope);
  const strategy = value instanceof Dictionary ? value : new Dictionary();
  const matrix = strategy.get("matrix") ?? null;
  if (matrix !== null && !(matrix instanceof Dictionary))
    throw new TemplateFault("The matrix is no mapping", entryOf(node, "matrix")?.at ?? node.at);
  const maxParallel = strategy.get("max-parallel");
  return {
    matrix: matrix ?? undefined,
    failFast: strategy.get("fail-fast") !== false,
    maxParallel: typeof maxParallel === "number" && maxParallel >= 1 ? Math.floor(maxParallel) : undefined,
  };
}

type Settings = Omit<CellPlan, keyof StrategyFacts | "name">;

function jobSettings(job: NormalJob, scope: Scope): Settings {
  return {
    ...runsOn(job.runsOn, scope),
    isFailureAllowed: job.continueOnError ? templateBoolean(job.continueOnError, scope) : false,
    timeoutMinutes: job.timeoutMinutes ? templateNumber(job.timeoutMinutes, scope) : timeoutMinutesDefault,
    cancelTimeoutMinutes: job.cancelTimeoutMinutes
      ? templateNumber(job.cancelTimeoutMinutes, scope)
      : cancelTimeoutMinutesDefault,
    ...(job.retry && { retry: job.retry }),
    ...environmentOf(job.environment, scope),
    ...concurrencyOf(job.concurrency, scope),
  };
}

/** CI-63: its address is evaluated when the job has run. */
function environmentOf(node: Node | undefined, scope: Scope): Pick<CellPlan, "environment"> {
  if (!node) return {};
  const [named, url, deployment] =
    node.kind === "mapping" ? ["name", "url", "deployment"].map((key) => entryOf(node, key)) : [node];
  const name = named ? templateText(named, scope).trim() : "";
  if (name === "") return {};
  const isDeployment = deployment ? templateBoolean(deployment, scope) : true;
  return { environment: { name: name.slice(0, environmentLengthMax), ...(url && { url }), isDeployment } };
}

const environmentLengthMax = 255;

function callSettings(job: CallJob, scope: Scope): Settings {
  return {
    labels: [],
    isFailureAllowed: false,
    timeoutMinutes: timeoutMinutesDefault,
    cancelTimeoutMinutes: cancelTimeoutMinutesDefault,
    ...concurrencyOf(job.concurrency, scope),
  };
}

/** All labels must be on a runner, in any case (CI-72). */
function runsOn(node: Node, scope: Scope): Pick<CellPlan, "labels" | "group"> {
  const value = templateValue(node, scope);
  if (!(value instanceof Dictionary)) return { labels: labelsIn(value) };
  const group = value.get("group") ?? null;
  return { labels: labelsIn(value.get("labels") ?? null), ...(group !== null && { group: textOf(group) }) };
}

function labelsIn(value: Value): readonly string[] {
  const labels = (isArray(value) ? value : [value]).map((item) => textOf(item).trim());
  return labels.filter((label) => label !== "");
}

const groupLengthMax = 400;

/** CI-60. */
export function concurrencyOf(node: Node | undefined, scope: Scope): Pick<CellPlan, "concurrency"> {
  if (!node) return {};
  const value = templateValue(node, scope);
  const settings = value instanceof Dictionary ? value : new Dictionary([["group", value]]);
  const group = textOf(settings.get("group") ?? null);
  if (group === "") throw new TemplateFault("Concurrency group name cannot be empty", node.at);
  if (group.length > groupLengthMax)
    throw new TemplateFault(`Concurrency group name must be less than ${groupLengthMax} characters`, node.at);
  const cancels = settings.get("cancel-in-progress") ?? false;
  const queue = settings.get("queue") === "max" ? "max" : "single";
  return { concurrency: { group, cancelsInProgress: cancels === true || cancels === "true", queue } };
}
