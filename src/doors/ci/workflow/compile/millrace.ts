/** What `x-millrace` says of a job or a step: words that only this program knows. */
import type { Problems } from "#doors/ci/workflow/problem.ts";
import { entryOf, type Node, stringOf } from "#doors/ci/workflow/yaml/node.ts";

export type OnRunnerLoss = "resume" | "restart" | "fail";
/** Why a step ended, as far as another try may depend on it. */
export type RetryReason = "failure" | "timed-out";
export type StepRetry = { readonly triesMax: number; readonly on: readonly RetryReason[] };

const retriesMax = 10;

export function onRunnerLossOf(node: Node | undefined): OnRunnerLoss | undefined {
  return stringOf(entryOf(node, "on-runner-loss")) as OnRunnerLoss | undefined;
}

/** How often a lost runner is made up for; undefined: as usual. */
export function lossesOf(node: Node | undefined, problems: Problems): number | undefined {
  return retryCount(entryOf(node, "retry"), problems);
}

/** Left out, `on` means every reason. */
export function stepRetryOf(node: Node | undefined, problems: Problems): StepRetry | undefined {
  const retry = entryOf(node, "retry");
  const count = retryCount(retry, problems);
  if (count === undefined) return undefined;
  const on = entryOf(retry, "on");
  const words = (on?.kind === "sequence" ? on.items : on ? [on] : []).flatMap((word) => stringOf(word) ?? []);
  return { triesMax: count + 1, on: words.length > 0 ? (words as RetryReason[]) : ["failure", "timed-out"] };
}

function retryCount(retry: Node | undefined, problems: Problems): number | undefined {
  const max = entryOf(retry, "max");
  if (max?.kind !== "scalar") return undefined;
  const count = max.value;
  if (typeof count === "number" && Number.isInteger(count) && count >= 0 && count <= retriesMax) return count;
  problems.add(max.at, `retry.max must be a whole number from 0 to ${retriesMax}`);
  return undefined;
}
