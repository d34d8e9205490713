/** Pure: a kernel job as a run, in the words of the dialect. */
import type { JobView, StageView, TaskView } from "#kernel/read/query.ts";
import { conclusionStage } from "./plan.ts";
import { readCellResult } from "./result.ts";

export type RunStatus = "queued" | "in_progress" | "completed";
export type Conclusion = "success" | "failure" | "cancelled" | "skipped";

export type RunView = {
  readonly name: string;
  readonly status: RunStatus;
  readonly conclusion?: Conclusion;
  readonly jobs: readonly RunJobView[];
};

export type RunJobView = {
  readonly id: string;
  readonly status: RunStatus;
  readonly conclusion?: Conclusion;
  /** Why it was skipped or failed before it ran. */
  readonly reason: string;
  readonly cells: readonly { readonly index: number; readonly attempts: number; readonly conclusion?: Conclusion }[];
};

export function viewRun({ name, phase, stages, tasks }: JobView): RunView {
  const jobs = stages.filter((stage) => stage.name !== conclusionStage).map((stage) => jobOf(stage, tasks));
  if (phase !== "SUCCEEDED" && phase !== "FAILED" && phase !== "CANCELLED") {
    const isWaiting = jobs.every(({ status }) => status === "queued");
    return { name, status: isWaiting ? "queued" : "in_progress", jobs };
  }
  const isCancelled =
    phase === "CANCELLED" || (phase === "FAILED" && !jobs.some((job) => job.conclusion === "failure"));
  const conclusion = phase === "SUCCEEDED" ? "success" : isCancelled ? "cancelled" : "failure";
  return { name, status: "completed", conclusion, jobs };
}

function jobOf(stage: StageView, tasks: readonly TaskView[]): RunJobView {
  const cells = tasks.filter((task) => task.stage === stage.stage && !task.planning).map((task) => cellOf(task));
  const shared = { id: stage.name, reason: stage.reason, cells };
  switch (stage.phase) {
    case "SKIPPED":
      return { ...shared, status: "completed", conclusion: "skipped" };
    case "CANCELLED":
      return { ...shared, status: "completed", conclusion: "cancelled" };
    case "FAILED":
      return { ...shared, status: "completed", conclusion: "failure" };
    case "COMPLETED":
      return { ...shared, status: "completed", conclusion: worst(cells) };
    case "RUNNING":
      return { ...shared, status: cells.length > 0 ? "in_progress" : "queued" };
    default:
      return { ...shared, status: "queued" };
  }
}

type Cell = RunJobView["cells"][number];

function cellOf({ key, attempts, phase, result }: TaskView): Cell {
  const index = Number(key);
  const read = result && readCellResult(result.payload);
  if (read) {
    const counted = read.result === "failure" && read.isFailureAllowed ? "success" : read.result;
    return { index, attempts, conclusion: counted };
  }
  if (phase === "FAILED") return { index, attempts, conclusion: "failure" };
  return phase === "CANCELLED" ? { index, attempts, conclusion: "cancelled" } : { index, attempts };
}

function worst(cells: readonly Cell[]): Conclusion {
  if (cells.some(({ conclusion }) => conclusion === "failure")) return "failure";
  return cells.some(({ conclusion }) => conclusion === "cancelled") ? "cancelled" : "success";
}
