/** What became of a job, from the end of its task: one that failed commits as well, and its result says so. Pure. */
import type { FeedItem } from "#kernel/read/feed.ts";
import type { Conclusion } from "#doors/ci/view.ts";
import { readCellResult } from "#doors/ci/result.ts";

const committed = new Set(["committed", "reused"]);
const phases: Readonly<Record<string, Conclusion>> = {
  SUCCEEDED: "success",
  FAILED: "failure",
  CANCELLED: "cancelled",
};

/** Whether the phase of the item does not say it. */
export const asksForResult = ({ kind, change, task }: FeedItem): boolean =>
  kind === "task" && !task?.planning && committed.has(change);

/** Undefined while it has not ended. */
export function cellEnd({ change, phase }: FeedItem, result: string | undefined): Conclusion | undefined {
  // Every cancelled task has an item when its stage ends, also one whose attempt has ended before.
  const isOver = committed.has(change) || change === "failed" || change === "cancelled";
  if (!isOver && !(change === "attempt-ended" && phase === "FAILED")) return undefined;
  const read = committed.has(change) && result !== undefined ? readCellResult(result) : undefined;
  if (!read) return phases[phase] ?? "failure";
  return read.result === "failure" && read.isFailureAllowed ? "success" : read.result;
}
