/** How often a job is tried again, and for which reasons. Pure. */
import type { FailReason, FailureCounts, TaskTemplate } from "#kernel/model/model.ts";
import type { JobRetry, OnRunnerLoss } from "#doors/ci/workflow/compile/millrace.ts";
import type { Job } from "#doors/ci/workflow/compile/model.ts";

const lossesDefault = 2;
const backoffMsDefault = 1_000;
const backoffMsMax = 60_000;

type Attempts = Pick<TaskTemplate, "attemptsMax" | "retryOn" | "retries" | "backoffMs" | "backoffMsMax">;

/** Without reasons beyond a lost runner the template says what every version of a cluster knows. */
export function attemptsOf(
  { counts, delayMs = backoffMsDefault }: JobRetry = { counts: {} },
  onRunnerLoss: OnRunnerLoss | undefined,
): Attempts {
  const losses = onRunnerLoss === "fail" ? 0 : (counts["runner-lost"] ?? lossesDefault);
  const { preempted, failure, "timed-out": timedOut } = counts;
  const shared = { backoffMs: delayMs, backoffMsMax: Math.max(backoffMsMax, delayMs) };
  if ((preempted ?? failure ?? timedOut) === undefined)
    return { attemptsMax: 1 + losses, retryOn: "infrastructure", ...shared };
  const retries: FailureCounts = {
    "executor-lost": losses,
    "input-lost": losses,
    "out-of-memory": losses,
    preempted: preempted ?? losses,
    "user-failure": failure ?? 0,
    "timed-out": timedOut ?? 0,
  };
  const sum = losses + (preempted ?? 0) + (failure ?? 0) + (timedOut ?? 0);
  return { attemptsMax: 1 + sum, retryOn: "any", retries, ...shared };
}

/** The job says it, else its pool or the cluster; what no file holds starts again wherever it may be tried again. */
export function lossOf(job: Job, ofCluster: OnRunnerLoss | undefined): OnRunnerLoss | undefined {
  if (job.kind === "call") return ofCluster;
  const { onRunnerLoss, container, services, steps } = job;
  if (onRunnerLoss) return onRunnerLoss;
  if (ofCluster === "fail") return ofCluster;
  const hasBackground = steps.some((step) => "isBackground" in step && step.isBackground);
  return container || services || hasBackground ? "restart" : ofCluster;
}

/** How a job ended by itself, as far as another attempt may follow. */
export type OwnEnd = Extract<FailReason, "user-failure" | "timed-out">;

/** Whether the shard will try again after such an end. */
export const isTriedAgain = (
  retry: JobRetry | undefined,
  reason: OwnEnd,
  failures: FailureCounts | undefined,
): boolean => (failures?.[reason] ?? 0) < (retry?.counts[reason === "timed-out" ? "timed-out" : "failure"] ?? 0);

/** How often the job itself has ended without success: what was kept before that is of a try that is over. */
export const triesOf = (failures: FailureCounts | undefined): number =>
  (failures?.["user-failure"] ?? 0) + (failures?.["timed-out"] ?? 0);
