/** What `x-millrace` says of a job or a step: words that only this program knows. */
import { durationHelp, parseDurationMs } from "#base/units.ts";
import type { Problems } from "#doors/ci/workflow/problem.ts";
import { entryOf, type Node, stringOf } from "#doors/ci/workflow/yaml/node.ts";

export type OnRunnerLoss = "resume" | "restart" | "fail";
/** Why a step ended, as far as another try may depend on it. */
export type RetryReason = "failure" | "timed-out";
export type StepRetry = {
  readonly triesMax: number;
  readonly on: readonly RetryReason[];
  readonly delayMs?: number;
};
/** Why an attempt at a job ended. */
export type JobRetryReason = RetryReason | "runner-lost" | "preempted";
export type JobRetry = {
  /** How often the job is tried again, by reason. */
  readonly counts: Readonly<Partial<Record<JobRetryReason, number>>>;
  readonly delayMs?: number;
};

const retriesMax = 10;
const delayMsMax = 3_600_000;

export function onRunnerLossOf(node: Node | undefined): OnRunnerLoss | undefined {
  return stringOf(entryOf(node, "on-runner-loss")) as OnRunnerLoss | undefined;
}

/** One rule, or several for reasons of their own. Left out, `on` means that its runner was lost. */
export function jobRetryOf(node: Node | undefined, problems: Problems): JobRetry | undefined {
  const retry = entryOf(node, "retry");
  const rules = retry?.kind === "sequence" ? retry.items : retry ? [retry] : [];
  const counts: Partial<Record<JobRetryReason, number>> = {};
  let delayMs: number | undefined;
  for (const rule of rules) {
    const max = retryCount(rule, problems);
    if (max === undefined) continue;
    const reasons = wordsOf(entryOf(rule, "on")) as readonly JobRetryReason[];
    for (const reason of reasons.length > 0 ? reasons : ["runner-lost" as const]) {
      if (counts[reason] !== undefined) problems.add(rule.at, `retry says twice what follows ${reason}`);
      counts[reason] = max;
    }
    delayMs = Math.max(delayMs ?? 0, delayOf(rule, problems) ?? 0) || undefined;
  }
  if (Object.keys(counts).length === 0) return undefined;
  return { counts, ...(delayMs !== undefined && { delayMs }) };
}

/** Left out, `on` means every reason. */
export function stepRetryOf(node: Node | undefined, problems: Problems): StepRetry | undefined {
  const retry = entryOf(node, "retry");
  const count = retryCount(retry, problems);
  if (count === undefined) return undefined;
  const words = wordsOf(entryOf(retry, "on")) as readonly RetryReason[];
  const delayMs = delayOf(retry, problems);
  return {
    triesMax: count + 1,
    on: words.length > 0 ? words : ["failure", "timed-out"],
    ...(delayMs !== undefined && { delayMs }),
  };
}

const wordsOf = (node: Node | undefined): readonly string[] =>
  (node?.kind === "sequence" ? node.items : node ? [node] : []).flatMap((word) => stringOf(word) ?? []);

function retryCount(retry: Node | undefined, problems: Problems): number | undefined {
  const max = entryOf(retry, "max");
  if (max?.kind !== "scalar") return undefined;
  const count = max.value;
  if (typeof count === "number" && Number.isInteger(count) && count >= 0 && count <= retriesMax) return count;
  problems.add(max.at, `retry.max must be a whole number from 0 to ${retriesMax}`);
  return undefined;
}

/** Before the first further try; it doubles with every one. */
function delayOf(retry: Node | undefined, problems: Problems): number | undefined {
  const delay = entryOf(retry, "delay");
  if (!delay) return undefined;
  const ms = parseDurationMs(stringOf(delay) ?? "");
  if (ms !== undefined && ms <= delayMsMax) return ms;
  problems.add(delay.at, `retry.delay is no time up to an hour: ${durationHelp}`);
  return undefined;
}
