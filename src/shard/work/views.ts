/** Views of a shard as messages of the work protocol, and back. */
import type * as kernel from "#kernel/read/query.ts";
import type * as wire from "#wire/generated/millrace/work/v1/view.ts";
import type { Failure } from "#kernel/model/model.ts";
import { readCounts, readSignal, writeCounts } from "./model.ts";
import { readResult, readSteps, writeSteps } from "./model.ts";
import { each, failReasons, jobPhases, noSuch, refuse, stagePhases, taskPhases, within } from "./enums.ts";

export const writeTask = (task: kernel.TaskView): wire.TaskView => ({
  ...task,
  phase: taskPhases.numberOf(task.phase),
  lastFailure: task.lastFailure && writeFailure(task.lastFailure),
  steps: writeSteps(task.steps),
});

const writeFailure = ({ reason, message, result }: Failure): wire.Failure => ({
  reason: failReasons.numberOf(reason),
  message,
  result,
});

const readFailure = ({ reason, message, result }: wire.Failure): Failure => ({
  reason: failReasons.wordOf(reason) ?? noSuch("reason"),
  message,
  ...(result && { result: readResult(result) }),
});

export const readTask = ({ result, lastFailure, checkpoint, retryInMs, ...task }: wire.TaskView): kernel.TaskView => ({
  ...task,
  ...(checkpoint && { checkpoint }),
  phase: taskPhases.wordOf(task.phase) ?? noSuch("phase"),
  result: result && readResult(result),
  lastFailure: lastFailure && within("lastFailure", () => readFailure(lastFailure)),
  steps: readSteps(task.steps),
  retryInMs,
});

const writeStage = ({ signals = [], ...stage }: kernel.StageView): wire.StageView => ({
  ...stage,
  arrays: stage.arrays ?? [],
  signals,
  phase: stagePhases.numberOf(stage.phase),
});

const readStage = ({ arrays, manifest, signals, ...stage }: wire.StageView): kernel.StageView => ({
  ...stage,
  ...(arrays.length > 0 && { arrays }),
  ...(manifest !== undefined && { manifest }),
  ...(signals.length > 0 && { signals: signals.map(readSignal) }),
  phase: stagePhases.wordOf(stage.phase) ?? noSuch("phase"),
});

export const writeJob = (job: kernel.JobView): wire.JobView => ({
  ...job,
  phase: jobPhases.numberOf(job.phase),
  stages: job.stages.map(writeStage),
  tasks: job.tasks.map(writeTask),
  tags: job.tags ?? [],
});

/** Left out where a job has none, as the kernel does. */
const extrasOf = ({
  tags,
  series,
}: Pick<wire.JobView, "tags" | "series">): Pick<kernel.JobView, "tags" | "series"> => ({
  ...(tags.length > 0 && { tags }),
  ...(series && { series }),
});

export const readJob = ({ endedAtMs, tags, series, ...job }: wire.JobView): kernel.JobView => ({
  ...job,
  ...extrasOf({ tags, series }),
  phase: jobPhases.wordOf(job.phase) ?? noSuch("phase"),
  endedAtMs,
  stages: each("stages", job.stages, readStage),
  tasks: each("tasks", job.tasks, readTask),
});

export const writeLine = (line: kernel.JobLine): wire.JobLine => ({
  ...line,
  phase: jobPhases.numberOf(line.phase),
  tags: line.tags ?? [],
});

export const readLine = ({ endedAtMs, tags, series, ...line }: wire.JobLine): kernel.JobLine => ({
  ...line,
  ...extrasOf({ tags, series }),
  phase: jobPhases.wordOf(line.phase) ?? noSuch("phase"),
  endedAtMs,
});

export const writeWhy = (why: kernel.Why): wire.Why => ({
  ...why,
  because: writeReason(why.because),
  failures: writeCounts(why.failures),
  pending: why.pending ?? [],
  second: why.second ?? "",
});

export const readWhy = ({ because, checkpoint, failures, pending, second, ...why }: wire.Why): kernel.Why => ({
  ...why,
  because: readReason(because),
  ...(checkpoint && { checkpoint }),
  ...(failures.length > 0 && { failures: readCounts(failures) }),
  ...(pending.length > 0 && { pending }),
  ...(second !== "" && { second }),
});

function writeReason(reason: kernel.WhyReason): wire.Why["because"] {
  switch (reason.kind) {
    case "back-off":
      return { kind: "backOff", value: reason };
    case "parallel-max":
      return { kind: "parallelMax", value: reason };
    case "no-executor":
      return { kind: "noExecutor", value: reason };
    case "cleaning-up":
      return { kind: "cleaningUp", value: reason };
    default:
      return { kind: reason.kind, value: reason } as wire.Why["because"];
  }
}

function readReason(reason: wire.Why["because"]): kernel.WhyReason {
  if (reason === undefined) return refuse("because", "must be there");
  switch (reason.kind) {
    case "backOff":
      return { kind: "back-off", ...reason.value };
    case "parallelMax":
      return { kind: "parallel-max", ...reason.value };
    case "cleaningUp":
      return { kind: "cleaning-up", ...reason.value };
    case "noExecutor":
      return { kind: "no-executor", nearest: reason.value.nearest, missing: reason.value.missing };
    default:
      return { kind: reason.kind, ...reason.value } as kernel.WhyReason;
  }
}

export const writeInputs = (inputs: kernel.PlanInputs): wire.PlanInputs => ({
  ...inputs,
  needs: inputs.needs.map((need) => ({ ...need, phase: stagePhases.numberOf(need.phase) })),
  results: inputs.results.map(({ failure, ...result }) => ({
    ...result,
    phase: taskPhases.numberOf(result.phase),
    ...(failure && { failure: writeFailure(failure) }),
  })),
});

export const readInputs = ({ next, cancelled, ...inputs }: wire.PlanInputs): kernel.PlanInputs => ({
  ...inputs,
  ...(cancelled && { cancelled }),
  signals: inputs.signals.map(readSignal),
  needs: each("needs", inputs.needs, ({ manifest, ...need }) => ({
    ...need,
    ...(manifest !== undefined && { manifest }),
    phase: stagePhases.wordOf(need.phase) ?? noSuch("phase"),
  })),
  results: each("results", inputs.results, ({ result, failure, ...rest }) => ({
    ...rest,
    phase: taskPhases.wordOf(rest.phase) ?? noSuch("phase"),
    result: result && readResult(result),
    ...(failure && { failure: within("failure", () => readFailure(failure)) }),
  })),
  next,
});

export const readExecutor = ({ drained, ...executor }: wire.ExecutorView): kernel.ExecutorView => ({
  ...executor,
  drained,
});

export const writeStats = ({ nowMs, ...stats }: kernel.Stats): wire.Stats => ({ ...stats, nowAtMs: nowMs });
export const readStats = ({ nowAtMs, ...stats }: wire.Stats): kernel.Stats => ({ ...stats, nowMs: nowAtMs });
