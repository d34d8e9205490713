/** Pure: a kernel job as a run, in the words of the dialect. */
import type { Step } from "#kernel/model/model.ts";
import type { JobView, StageView, TaskView } from "#kernel/read/query.ts";
import { withoutOutput } from "#worker/printed/failure-output.ts";
import { cellName, cellNumbers } from "./cell-key.ts";
import { signals } from "./environments/gate.ts";
import { conclusionStage } from "./plan.ts";
import { readCellResult, type StepLine } from "./result.ts";

export type RunStatus = "waiting" | "queued" | "in_progress" | "completed";
export type Conclusion = "success" | "failure" | "cancelled" | "skipped";

export type RunView = {
  readonly name: string;
  readonly status: RunStatus;
  readonly conclusion?: Conclusion;
  readonly jobs: readonly RunJobView[];
};

export type RunJobView = {
  readonly id: string;
  readonly needs: readonly string[];
  readonly status: RunStatus;
  readonly conclusion?: Conclusion;
  /** Why it was skipped or failed before it ran. */
  readonly reason: string;
  readonly cells: readonly CellView[];
};

export type CellView = {
  readonly task: number;
  readonly index: number;
  readonly name: string;
  readonly status: RunStatus;
  readonly conclusion?: Conclusion;
  /** It failed, and may: it counts as a success. */
  readonly isFailureAllowed?: true;
  readonly attempts: number;
  /** Who runs it now. */
  readonly runner?: string;
  /** Why the last attempt ended without a result. */
  readonly failure?: string;
  readonly steps: readonly StepView[];
};

export type StepView = {
  readonly number: number;
  readonly name: string;
  readonly status: RunStatus;
  readonly conclusion?: Conclusion;
  readonly atMs?: number;
  readonly tookMs?: number;
};

const endedPhases: ReadonlySet<string> = new Set(["SUCCEEDED", "FAILED", "CANCELLED"]);

export function viewRun({ name, phase, stages, tasks }: JobView): RunView {
  const named = new Map(stages.map((stage) => [stage.stage, stage.name]));
  const jobs = stages.filter((stage) => stage.name !== conclusionStage).map((stage) => jobOf(stage, tasks, named));
  if (!endedPhases.has(phase)) {
    return { name, status: statusOfRun(jobs), jobs };
  }
  const isCancelled =
    phase === "CANCELLED" || (phase === "FAILED" && !jobs.some((job) => job.conclusion === "failure"));
  const conclusion = phase === "SUCCEEDED" ? "success" : isCancelled ? "cancelled" : "failure";
  return { name, status: "completed", conclusion, jobs };
}

/** It waits for a person where nothing else of it runs or is about to. */
function statusOfRun(jobs: readonly RunJobView[]): RunStatus {
  const open = jobs.filter(({ status }) => status !== "completed");
  if (open.some(({ status }) => status === "in_progress")) return "in_progress";
  if (open.some(({ status }) => status === "waiting")) return "waiting";
  return jobs.every(({ status }) => status === "queued") ? "queued" : "in_progress";
}

/** Without the name of the stage that decides, which is no job of the workflow. */
export const reasonOf = ({ reason }: Pick<JobView, "reason">): string =>
  reason.startsWith(`${conclusionStage}: `) ? reason.slice(conclusionStage.length + 2) : reason;

function jobOf(stage: StageView, tasks: readonly TaskView[], named: ReadonlyMap<number, string>): RunJobView {
  const cells = tasks.filter((task) => task.stage === stage.stage && !task.planning).map((task) => cellOf(task));
  const needs = stage.needs.flatMap((need) => named.get(need) ?? []);
  const shared = { id: stage.name, needs, reason: stage.reason, cells };
  switch (stage.phase) {
    case "SKIPPED":
      return { ...shared, status: "completed", conclusion: "skipped" };
    case "CANCELLED":
      return { ...shared, status: "completed", conclusion: "cancelled" };
    case "FAILED":
      return { ...shared, status: "completed", conclusion: areUntaken(cells) ? "cancelled" : "failure" };
    case "COMPLETED":
      return { ...shared, status: "completed", conclusion: worst(cells) };
    case "RUNNING":
      return { ...shared, status: cells.some(({ status }) => status !== "queued") ? "in_progress" : "queued" };
    default:
      return { ...shared, status: stage.waitsForSignals.includes(signals.review) ? "waiting" : "queued" };
  }
}

function cellOf(view: TaskView): CellView {
  const { task, key, attempts, phase, result, claims, lastFailure, steps } = view;
  const read = result && readCellResult(result.payload);
  const left = lastFailure?.result && readCellResult(lastFailure.result.payload);
  const shared = {
    task,
    index: cellNumbers(key).at(-1) ?? 0,
    name: cellName(key),
    attempts,
    ...(claims[0] && { runner: claims[0].executor }),
    ...(lastFailure && { failure: withoutOutput(lastFailure.message) }),
    steps: stepsOf(steps, read?.steps ?? left?.steps ?? []),
  };
  if (read) {
    if (read.result === "failure" && read.isFailureAllowed)
      return { ...shared, status: "completed", conclusion: "success", isFailureAllowed: true };
    return { ...shared, status: "completed", conclusion: read.result };
  }
  // CI-14: without an attempt that failed, no runner took it within a day
  if (phase === "FAILED" && lastFailure) return { ...shared, status: "completed", conclusion: "failure" };
  if (phase === "FAILED" || phase === "CANCELLED") return { ...shared, status: "completed", conclusion: "cancelled" };
  return { ...shared, status: claims.length > 0 ? "in_progress" : "queued" };
}

/** While it runs the shard knows the steps; the result knows how long they took. */
function stepsOf(reported: readonly Step[], ended: readonly StepLine[]): readonly StepView[] {
  const steps = new Map<number, StepView>();
  for (const { step, name, status } of reported) steps.set(step, { number: step, name, ...statusOf[status] });
  for (const { number, name, conclusion, atMs, tookMs } of ended)
    steps.set(number, { number, name, status: "completed", conclusion, atMs, tookMs });
  return [...steps.values()].toSorted((a, b) => a.number - b.number);
}

const statusOf: Readonly<Record<Step["status"], Pick<StepView, "status" | "conclusion">>> = {
  started: { status: "in_progress" },
  progress: { status: "in_progress" },
  succeeded: { status: "completed", conclusion: "success" },
  failed: { status: "completed", conclusion: "failure" },
  skipped: { status: "completed", conclusion: "skipped" },
};

const areUntaken = (cells: readonly CellView[]): boolean =>
  cells.length > 0 && cells.every(({ conclusion }) => conclusion === "cancelled");

function worst(cells: readonly CellView[]): Conclusion {
  if (cells.some(({ conclusion }) => conclusion === "failure")) return "failure";
  return cells.some(({ conclusion }) => conclusion === "cancelled") ? "cancelled" : "success";
}
