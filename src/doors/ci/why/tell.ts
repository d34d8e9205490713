/** Why a job or a step is where it is, as lines for people. Pure. */
import type { WhyReason } from "#kernel/read/query.ts";
import { viewWhy } from "#door/view.ts";
import type { JobDetails } from "#doors/ci/details.ts";
import type { CellView, RunJobView, StepView } from "#doors/ci/view.ts";
import { type ConditionPart, conditionLines } from "#doors/ci/workflow/expression/explain.ts";
import { lacksContainers, runnerLabels, tellLabels, type UnknownLabel } from "./labels.ts";

export type Wait = {
  readonly because: WhyReason;
  /** Of the task, in its stage. */
  readonly key?: string | undefined;
  /** Who can run it. */
  readonly runners: readonly string[];
  readonly unknown: readonly UnknownLabel[];
};

const shownMax = 5;
const messageLengthMax = 300;

export function tellWait({ because, runners, unknown }: Wait): string {
  if (because.kind === "no-executor") {
    if (unknown.length > 0) return tellLabels(unknown);
    if (because.nearest === undefined) return "no runner has asked for work yet";
    if (lacksContainers(because.missing))
      return `it needs podman or docker for its container, services or an action that is an image, and no runner that fits it offers them (ci.containers.engine of a node); the nearest is ${because.nearest}`;
    const lacks = runnerLabels(because.missing);
    const shown = lacks.length > 0 ? `the label ${lacks.join(", ")}` : because.missing.join(", ");
    return `no runner has all that it asks for; the nearest, ${because.nearest}, lacks ${shown}`;
  }
  if (because.kind !== "queued") return viewWhy(because);
  const { position, executors, tenantsAhead } = because;
  const who = executors === 1 ? "the one runner" : `one of ${executors} runners`;
  const named = runners.length === 0 ? "" : ` (${runners.slice(0, shownMax).join(", ")})`;
  const ahead = position === 0 ? "it is the next of its tenant" : `${position} of its tenant are before it`;
  const others = tenantsAhead === 0 ? "" : `, and ${tenantsAhead} other tenants go first`;
  return `it waits for ${who} that can run it${named}: ${ahead}${others}`;
}

export function tellCell(cell: CellView, wait: Wait | undefined, details: JobDetails): readonly string[] {
  const { status, conclusion, runner, attempts, failure, steps } = cell;
  const again = attempts > 1 && failure !== undefined ? [`attempt ${attempts}; the one before: ${failure}`] : [];
  if (status === "queued") return [...again, wait ? tellWait(wait) : "it waits to be given to a runner"];
  if (status === "in_progress") {
    const at = steps.findLast((step) => step.status === "in_progress");
    return [...again, `it runs on ${runner ?? "a runner"}${at ? `, at step ${at.number}: ${at.name}` : ""}`];
  }
  const failed = steps.filter((step) => step.conclusion === "failure" || step.conclusion === "cancelled");
  const lines = failed.flatMap((step) => tellStep(step, { details, steps }));
  if (conclusion === "success") return [...again, "it succeeded", ...lines];
  const because = failure !== undefined && lines.length === 0 ? `: ${failure}` : "";
  return [...again, `${conclusion === "cancelled" ? "it was cancelled" : "it failed"}${because}`, ...lines];
}

/** A job that was not given to a runner. */
export function tellUnplanned(
  { conclusion, reason }: Pick<RunJobView, "conclusion" | "reason">,
  wait: Wait | undefined,
  condition: ConditionPart | undefined,
): readonly string[] {
  if (conclusion === "skipped")
    return [`it was skipped: ${reason}`, ...(condition ? conditionLines(condition, 1) : [])];
  if (conclusion !== undefined) {
    const how = conclusion === "cancelled" ? "it was cancelled" : "it failed before it ran";
    return [reason === "" ? how : `${how}: ${reason}`];
  }
  return [wait ? tellWait(wait) : "it is being planned"];
}

export function tellStep(
  step: StepView,
  { details, steps }: { readonly details: JobDetails; readonly steps: readonly StepView[] },
): readonly string[] {
  const { number, name, status, conclusion } = step;
  const which = `step ${number}, ${name},`;
  if (status === "in_progress") return [`${which} is running`];
  if (conclusion === "skipped") {
    const condition = conditionOf(details, number);
    return [`${which} was skipped`, ...(condition ? conditionLines(condition, 1) : [])];
  }
  if (conclusion === undefined) {
    const running = steps.find((one) => one.status === "in_progress");
    return [`${which} waits for ${running ? `step ${running.number}, ${running.name}` : "the steps before it"}`];
  }
  if (conclusion === "success") return [`${which} succeeded`];
  const errors = details.annotations.filter((one) => one.step === number && one.level === "error");
  const messages = errors.slice(0, shownMax).map(({ message, file, line }) => {
    const at = file === undefined ? "" : `${file}${line === undefined ? "" : `:${line}`}: `;
    return `  ${at}${message.slice(0, messageLengthMax)}`;
  });
  return [`${which} ${conclusion === "cancelled" ? "was cancelled" : "failed"}`, ...messages];
}

export const conditionOf = (details: JobDetails, step: number): ConditionPart | undefined =>
  details.conditions.find((one) => one.step === step)?.condition;
