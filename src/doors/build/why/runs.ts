/** Pure: a job that ran an action, as far as it explains why the action was run, and why again. */
import type { Digest } from "#base/digest.ts";
import type { AttemptRow } from "#base/history-rows.ts";
import { formatDuration } from "#base/units.ts";
import type { JobView, TaskView } from "#kernel/read/query.ts";
import { readFailure } from "#doors/build/builds/failure-text.ts";
import { readSpec } from "#doors/build/plan.ts";
import { readOutcome, type AnswerAt, type RanBecause } from "#doors/build/run/outcome.ts";
import { tellEnding, type Ending } from "./ending.ts";
import { tellAttempt, tellBecause } from "./words.ts";

export type Run = {
  readonly job: string;
  /** Within a build. */
  readonly key?: string;
  readonly action: Digest;
  readonly phase: string;
  readonly submittedAtMs: number;
  readonly endedAtMs?: number;
  /** Its result came from the cache. */
  readonly cached: boolean;
  readonly because?: RanBecause;
  /** Why others could not use its result; undefined while that is unknown, and if they could. */
  readonly unshared?: string;
  /** How often it was started so far, and how the last ended attempt ended. */
  readonly tries: number;
  readonly lastFailure?: string;
  /** How its command ended; undefined until then, and when the answer is no longer kept. */
  readonly ending?: Ending;
  /** All attempts, once the job has ended. */
  readonly attempts: readonly Omit<AttemptRow, "shard" | "task" | "token" | "job">[];
};

/** `action` is known from elsewhere: history does not keep a job's spec. */
export function runOf(
  job: string,
  view: JobView,
  task: TaskView | undefined,
  attempts: readonly AttemptRow[],
  action: Digest,
): Run {
  const outcome = readOutcome(task?.result);
  const spec = readSpec(view.spec);
  const because = outcome?.because ?? spec?.because;
  const unshared = outcome ? whyUnshared(outcome) : whyNone(view, task);
  return {
    job,
    action: outcome?.action ?? spec?.action ?? action,
    phase: (task?.phase ?? view.phase).toLowerCase(),
    submittedAtMs: view.submittedAtMs,
    ...(view.endedAtMs !== undefined && { endedAtMs: view.endedAtMs }),
    cached: outcome?.cached === true,
    tries: task?.attempts ?? 0,
    ...(task?.lastFailure && { lastFailure: firstLine(`${task.lastFailure.reason}: ${task.lastFailure.message}`) }),
    ...(because && { because }),
    ...(unshared !== undefined && { unshared }),
    attempts: attempts
      .filter((row) => row.task === task?.task)
      .map(({ executor, outcome: how, reason, grantedAtMs, startedAtMs, endedAtMs }) => ({
        executor,
        outcome: how,
        reason,
        grantedAtMs,
        startedAtMs,
        endedAtMs,
      })),
  };
}

/** Where the answer is: for a failed action of a build, its failure says so. */
export const answerOf = (task: TaskView | undefined): AnswerAt | undefined =>
  readOutcome(task?.result) ?? (task?.lastFailure && readFailure(task.lastFailure.message).answer);

function whyUnshared({ code, exitCode, because }: NonNullable<ReturnType<typeof readOutcome>>): string | undefined {
  if (exitCode !== 0) return `its command ended with ${exitCode}, and such results are not cached`;
  if (code !== 0) return `it ended with status ${code}, and such results are not cached`;
  return because?.kind === "do-not-cache" ? tellBecause(because) : undefined;
}

function whyNone({ phase, reason, endedAtMs }: JobView, task: TaskView | undefined): string | undefined {
  if (endedAtMs === undefined) return undefined;
  const failure = task?.lastFailure && firstLine(task.lastFailure.message);
  return `it ended without a result: ${failure ?? (reason || phase.toLowerCase())}`;
}

/** Newest run first; each with why the run before did not make it unnecessary. */
export function tellRuns(runs: readonly Run[], nowMs: number): readonly string[] {
  return runs.flatMap((run, i) => {
    const before = runs[i + 1];
    const ago = `${formatDuration(Math.max(0, nowMs - run.submittedAtMs))} ago`;
    const head = `${run.job}${run.key === undefined ? "" : ` ${run.key}`}, asked for ${ago}: ${run.phase}`;
    return [head, ...tellRun(run, before).map((line) => `  ${line}`)];
  });
}

function tellRun(run: Run, before: Run | undefined): readonly string[] {
  const lines: string[] = [];
  if (run.cached) lines.push("not run: its result was in the cache");
  else if (run.because) lines.push(`run because ${tellBecause(run.because)}`);
  if (run.because?.kind === "never-stored" && before?.unshared !== undefined)
    lines.push(`${before.job} had run it before; ${before.unshared}`);
  if (run.attempts.length === 0 && run.tries > 1 && run.lastFailure !== undefined)
    lines.push(`begun ${run.tries} times; the last attempt that ended: ${run.lastFailure}`);
  const again = run.attempts.length > 1;
  if (again) lines.push(`run ${run.attempts.length} times:`);
  if (again) lines.push(...run.attempts.map((attempt, n) => `  ${tellAttempt(attempt, n + 1)}`));
  if (run.ending && !run.cached) lines.push(...tellEnding(run.ending));
  return lines;
}

const firstLine = (text: string): string => text.split("\n")[0] ?? text;
