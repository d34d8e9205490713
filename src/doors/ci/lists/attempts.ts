/** Attempts at a job of a run: of history once the run has ended, before that what the shard still knows. Pure. */
import type { z } from "zod";
import type { AttemptRow } from "#base/history-rows.ts";
import type { TaskView } from "#kernel/read/query.ts";
import type { Attempt } from "./endpoints.ts";

type Shown = z.input<typeof Attempt>;

const timeOf = (ms: number): string => new Date(ms).toISOString();

export const attemptsOfHistory = (rows: readonly AttemptRow[]): readonly Shown[] =>
  rows.map(({ executor, outcome, reason, grantedAtMs, startedAtMs, endedAtMs }, at) => ({
    number: at + 1,
    runner: executor,
    ...(startedAtMs > 0 && { startedAt: timeOf(startedAtMs) }),
    ...(endedAtMs > 0 && { endedAt: timeOf(endedAtMs) }),
    outcome: outcome === "" ? (endedAtMs > 0 ? "ended" : "running") : outcome,
    ...(reason !== "" && grantedAtMs > 0 && { reason }),
  }));

/** A shard keeps no list of attempts: it knows how many there were, the last that failed, and those that run. */
export function attemptsSoFar(task: Pick<TaskView, "attempts" | "claims" | "lastFailure">): readonly Shown[] {
  const { attempts, claims, lastFailure } = task;
  const before = Math.max(0, attempts - claims.length);
  const last = lastFailure && { number: before, runner: "", outcome: lastFailure.reason, reason: lastFailure.message };
  const running = claims.map(({ executor }, at) => ({ number: before + at + 1, runner: executor, outcome: "running" }));
  return [...(last && before > 0 ? [last] : []), ...running];
}
