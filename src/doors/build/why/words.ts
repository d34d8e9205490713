/** Pure: why work waits, was run, and was run again, as text for people. */
import type { AttemptRow } from "#base/history-rows.ts";
import { formatDuration } from "#base/units.ts";
import type { WhyReason } from "#kernel/read/query.ts";
import { viewArray, viewNotices } from "#door/view.ts";
import type { RanBecause } from "#doors/build/run/outcome.ts";

/** What nodes report of themselves: how many run actions, and how many of their slots are in use. */
export type Workers = { readonly nodes: number; readonly slots: number; readonly running: number };

/** Why something is not running, or where it is. */
export function tellWaits(because: WhyReason, workers?: Workers): string {
  switch (because.kind) {
    case "running":
      return `it runs on ${because.executor}`;
    case "ended":
      return `it has ended: ${because.phase.toLowerCase()}`;
    case "needs":
      return `it waits for ${listed(because.stages)}`;
    case "lock":
      return `it waits for the lock ${because.name}, with ${because.ahead} ahead of it`;
    case "signal":
      return `it waits for a signal (${because.names.join(" or ")}) for at most ${formatDuration(because.forMs)}`;
    case "back-off":
      return `it is tried again in ${formatDuration(because.forMs)}; the last attempt: ${because.lastFailure}`;
    case "parallel-max":
      return `at most ${because.limit} of its kind run at once`;
    case "quota":
      return `its tenant runs ${because.running} of at most ${because.runningMax} tasks`;
    case "no-executor":
      return because.nearest === undefined
        ? tellUnseen(because.missing, workers)
        : `no worker can run it; the nearest, ${because.nearest}, does not offer ${because.missing.join(", ")}`;
    case "drained":
      return `the workers that could run it are drained: ${listed(because.executors)}`;
    case "queued":
      return tellPlace(because);
    case "publishing":
      return `it is done; ${because.results} results are being published, for ${formatDuration(because.forMs)}`;
    case "cleaning-up":
      return `it was cancelled; ${listed(because.stages)} may still clean up, for ${formatDuration(because.forMs)}`;
    case "array":
      return viewArray(because);
    case "notices":
      return viewNotices(because);
    default:
      return because satisfies never;
  }
}

/** Workers ask a shard for work when they have free slots and it has work: until one has, the shard knows of none. */
function tellUnseen(needs: readonly string[], workers: Workers | undefined): string {
  if (!workers || workers.nodes === 0) return "there is no worker";
  const { nodes, slots, running } = workers;
  const who = nodes === 1 ? "1 node runs" : `${nodes} nodes run`;
  const use = `${running} of ${slots} slots in use`;
  return `no worker has asked for it yet: ${who} actions, with ${use}; it needs one that offers ${needs.join(", ")}`;
}

function tellPlace({ position, executors, tenantsAhead }: Extract<WhyReason, { kind: "queued" }>): string {
  const workers = executors === 1 ? "the one worker that can run it" : `the ${executors} workers that can run it`;
  const ahead = position === 0 ? "it is the next of its tenant" : `${position} of its tenant are before it`;
  const others = tenantsAhead === 0 ? "" : `, and ${tenantsAhead} other tenants go first`;
  return `it waits for ${workers}: ${ahead}${others}`;
}

const shownMax = 5;
const listed = (names: readonly string[]): string =>
  names.length > shownMax
    ? `${names.slice(0, shownMax).join(", ")} and ${names.length - shownMax} more`
    : names.join(", ");

/** Why it was run and not taken from the cache. */
export function tellBecause(because: RanBecause): string {
  switch (because.kind) {
    case "never-stored":
      return "no result of this action was in the cache";
    case "incomplete":
      return `its result was in the cache, and a blob that the result names was not: ${because.missing}`;
    case "revoked":
      return "its result in the cache had been revoked";
    case "skip-cache-lookup":
      return "its client did not want a result from the cache (skip_cache_lookup)";
    case "do-not-cache":
      return "the action says that its result is not to be cached (do_not_cache)";
    case "may-not-read":
      return "its client may not read the cache";
    case "lacks-output":
      return `the result in the cache lacks an output that is wanted here: ${because.output}`;
    default:
      return because satisfies never;
  }
}

/** One attempt and how it ended. */
export function tellAttempt(
  {
    executor,
    outcome,
    reason,
    grantedAtMs,
    startedAtMs,
    endedAtMs,
  }: Omit<AttemptRow, "shard" | "task" | "token" | "job">,
  number: number,
): string {
  const ranMs = Math.max(0, endedAtMs - (startedAtMs || grantedAtMs));
  const how = outcomes[outcome] ?? outcome;
  // A failed command's message ends with where its answer is kept, for programs.
  const why = reason === "" ? "" : `: ${reason.replace(/ \[action \S+, response \S+\]$/, "").split("\n")[0]}`;
  return `attempt ${number} on ${executor} ${how} after ${formatDuration(ranMs)}${why}`;
}

const outcomes: Readonly<Record<string, string>> = {
  committed: "ended well",
  failed: "failed",
  expired: "was lost",
  "timed-out": "took too long",
  released: "was given back",
  cancelled: "was stopped",
  superseded: "was overtaken by another",
};
