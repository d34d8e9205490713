/** How an attempt ends: with a committed result, or with a typed failure reason. */
import { hash32 } from "#base/random.ts";
import { markOf } from "#kernel/model/task-array.ts";
import { blamesExecutor } from "#kernel/apply/task.ts";
import type { CommandOf, Tokened } from "#kernel/model/command.ts";
import type { Rejection } from "#kernel/model/rejection.ts";
import { newestFeatures } from "./feature.ts";
import { consumersReopened } from "./invalidate.ts";
import { endedBy, findClaim, wasCancelled, whenCancelling } from "./claim.ts";
import { wrongEvidence } from "./submit.ts";
import { accept, type Decision, reject } from "./decision.ts";
import type { Claim, Task } from "#kernel/model/entities.ts";
import type { AttemptOutcome, Event, Next } from "#kernel/model/event.ts";
import type { FailReason, Result, TaskTemplate } from "#kernel/model/model.ts";
import { noMemoryForResult, outgrows } from "#kernel/memory/free-memory.ts";
import type { State } from "#kernel/model/state.ts";
import { failReasons, within, wrongChoice, wrongResult, wrongText } from "./validate.ts";

export function decideCommit(state: State, command: CommandOf<"commit">, nowMs: number): Decision {
  const wrong = within("result", wrongResult(command.result, state.limits, command.evidence?.digests));
  if (wrong) return reject(wrong);
  const found = findClaim(state, command);
  if (!found.claim) {
    const { task } = found;
    // The reply to the first commit may have been lost: repeat it.
    if (task?.result && task.resultToken === command.token && sameResult(task.result, command.result))
      return accept({ committed: true, generation: task.generation });
    if (task && isRecorded(task, command)) return accept({ committed: true, generation: task.generation });
    if (task && wasCancelled(task, command)) return accept({ committed: false, generation: task.generation });
    return endVoidClaimOr(state, command, nowMs) ?? reject(found.why);
  }
  const { claim } = found;
  const { task } = claim;
  if (task === task.stage.planning)
    return reject({ kind: "invalid", path: "task", why: "planning is answered with a plan, not a result" });
  // K3: every blob must be pinned, and the pin must not have expired.
  const unproven = wrongEvidence(command.result.digests, command.evidence);
  if (task.phase === "CANCELLING") {
    const left = unproven ? {} : leftBy(state, task, command.result);
    const end = { outcome: "cancelled", reason: "cancelled", message: "", next: whenCancelling(task), nowMs } as const;
    return accept({ committed: false, generation: task.generation }, [endAttempt(claim, { ...end, ...left })]);
  }
  if (unproven) return reject(unproven);
  const { job } = task.stage;
  if (outgrows(state, task, command.result)) return outgrown(claim, nowMs);
  const full = noMemoryForResult(state, job, command.result);
  if (full) return reject(full);
  return accept({ committed: true, generation: task.generation }, [
    { kind: "committed", task: task.no, token: command.token, result: command.result, at: nowMs },
    ...consumersReopened(state, task, command.result, nowMs),
  ]);
}

/** A job whose results need more memory than one job may use fails (K9): every retry would have the same outcome. */
function outgrown(claim: Claim, nowMs: number): Decision {
  const { task } = claim;
  const reason = "its results need more memory than one job may use: name bytes by digest, or split the job";
  return accept({ committed: false, generation: task.generation }, [
    { kind: "job-cancelling", job: task.stage.job.no, phase: "FAILED", reason, at: nowMs },
    endAttempt(claim, { outcome: "cancelled", reason: "cancelled", message: "", next: whenCancelling(task), nowMs }),
  ]);
}

/** The result of an array's task may have left memory for the manifest: then a hash of it is compared. */
const isRecorded = ({ array, phase, result, resultToken, index }: Task, command: CommandOf<"commit">): boolean =>
  array !== undefined &&
  phase === "SUCCEEDED" &&
  !result &&
  resultToken === command.token &&
  array.markAt(index) === markOf(command.result);

const sameResult = (a: Result, b: Result): boolean =>
  a.payload === b.payload &&
  a.publish === b.publish &&
  a.digests.length === b.digests.length &&
  a.digests.every((d, i) => b.digests[i] === d);

export function decideFail(state: State, command: CommandOf<"fail">, nowMs: number): Decision {
  const wrong =
    wrongChoice("reason", command.reason, failReasons) ??
    wrongText("message", command.message, state.limits.resultBytesMax) ??
    (command.result && within("result", wrongFailureResult(command.result, state, command.evidence?.digests)));
  if (wrong) return reject(wrong);
  const found = findClaim(state, command);
  if (!found.claim) {
    const last = endedBy(found.task, command);
    if (last && last.outcome !== "expired" && last.outcome !== "timed-out")
      return accept({ retryInMs: last.retryInMs });
    return endVoidClaimOr(state, command, nowMs) ?? reject(found.why);
  }
  const { reason, result } = command;
  const unproven = result && wrongEvidence(result.digests, command.evidence);
  if (unproven) return reject(unproven);
  const left = leftBy(state, found.claim.task, result);
  const message = shortened(
    left.lost ? `${command.message} (${left.lost})` : command.message,
    state.limits.messageLengthMax,
  );
  return failAttempt(state, found.claim, { reason, message, ...left, outcome: "failed", nowMs });
}

function wrongFailureResult(result: Result, { limits }: State, pinned?: readonly string[]): Rejection | undefined {
  const wrong = wrongResult(result, limits, pinned);
  if (wrong || result.publish === undefined) return wrong;
  return { kind: "invalid", path: "publish", why: "must not be there: only what succeeded is published" };
}

/** What an attempt leaves without succeeding. The attempt ends in any case: what cannot be kept is left out. */
function leftBy(
  state: State,
  task: Task,
  result: Result | undefined,
): { readonly result?: Result; readonly lost?: string } {
  if (!result || state.featureLevel < newestFeatures) return {};
  const { payload, digests } = result;
  const { job } = task.stage;
  const full = outgrows(state, task, result) || noMemoryForResult(state, job, result) !== undefined;
  return full ? { lost: "there was no memory for what it left" } : { result: { payload, digests } };
}

/** Cut the message instead of refusing the command: a failing executor has no way to shorten it. */
function shortened(message: string, lengthMax: number): string {
  if (message.length <= lengthMax) return message;
  // Copied through JSON: a slice would keep the whole text in memory.
  return JSON.parse(JSON.stringify(`${message.slice(0, lengthMax - 3).toWellFormed()}...`)) as string;
}

/** The end of a void claim changes only one thing: locks no longer wait for it. */
function endVoidClaimOr(state: State, command: Tokened, nowMs: number): Decision | undefined {
  const claim = state.executors.get(command.executor)?.claims.get(command.token);
  if (!claim?.void) return undefined;
  const gone: Event = {
    kind: "claim-gone",
    task: claim.task.no,
    token: claim.token,
    executor: claim.executor.id,
    at: nowMs,
  };
  const { task, token } = command;
  const rejection = { kind: "token-stale", task, offered: token, current: claim.task.claim?.token ?? 0 } as const;
  return { ok: false, rejection, events: [gone] };
}

export function failAttempt(
  state: State,
  claim: Claim,
  given: {
    readonly outcome: AttemptOutcome;
    readonly reason: FailReason;
    readonly message: string;
    readonly result?: Result | undefined;
    readonly nowMs: number;
  },
): Decision {
  const { nowMs } = given;
  const isWaiting = waitsForInput(claim.task, given);
  const next = isWaiting ? askAgain(claim.task.template, nowMs) : whatNext(claim, given, nowMs);
  const outcome = isWaiting ? "released" : given.outcome;
  const events: Event[] = [endAttempt(claim, { ...given, outcome, next })];
  const { executor } = claim;
  const { executorFailuresMax, executorDrainMs } = state.limits;
  const isDrained = executor.drained !== undefined && executor.drained.untilMs > nowMs;
  if (blamesExecutor(given) && executor.failures + 1 >= executorFailuresMax && !isDrained)
    events.push({
      kind: "executor-drained",
      executor: executor.id,
      reason: `${executor.failures + 1} attempts in a row ended with ${given.reason}: ${given.message.slice(0, 200)}`,
      untilMs: nowMs + executorDrainMs,
    });
  return accept({ retryInMs: next.do === "retry" ? next.atMs - nowMs : undefined }, events);
}

/** What it found lost is being made again, which has nothing to do with the task: the attempt does not count. */
const waitsForInput = (
  { stage, phase, second }: Task,
  { outcome, reason }: { readonly outcome: AttemptOutcome; readonly reason: FailReason },
): boolean =>
  outcome === "failed" &&
  reason === "input-lost" &&
  stage.waiting > 0 &&
  phase !== "CANCELLING" &&
  second === undefined;

const askAgainMs = 5_000;

const askAgain = ({ backoffMsMax }: TaskTemplate, nowMs: number): Next => ({
  do: "retry",
  atMs: nowMs + Math.min(askAgainMs, backoffMsMax),
});

/** Whether the task is tried again, and when (K4). */
function whatNext(
  claim: Claim,
  { outcome, reason }: { readonly outcome: AttemptOutcome; readonly reason: FailReason },
  nowMs: number,
): Next {
  const { task } = claim;
  const { template } = task;
  if (task.phase === "CANCELLING") return whenCancelling(task);
  if (task.second) return { do: "nothing" };
  if (chargedAttempts(task, reason) >= template.attemptsMax || isFinal(task, reason)) return { do: "fail" };
  const atMs = nowMs + backoffMs(template, task, claim.token);
  // A timed-out attempt may run on until its lease ends; work with outside effects never runs twice at once (K2).
  const mayRun = outcome === "timed-out" && template.effects === "outside";
  return { do: "retry", atMs: mayRun ? Math.max(atMs, claim.expiresAtMs) : atMs };
}

/** Whether a failure for this reason is not worth another attempt, however many are left. */
function isFinal(task: Task, reason: FailReason): boolean {
  const { retryOn, retries } = task.template;
  if (retries) return (task.failures?.[reason] ?? 0) >= (retries[reason] ?? 0);
  // A planner that is stuck is replaced: its time is not the user's.
  const mine = reason === "user-failure" || (reason === "timed-out" && task !== task.stage.planning);
  return mine && retryOn !== "any";
}

const losses: readonly FailReason[] = ["executor-lost", "preempted", "input-lost"];

/** Attempts that count towards attemptsMax: a few that were lost to infrastructure do not. */
function chargedAttempts({ attempts, failures, template: { lossesMax = 0 } }: Task, reason: FailReason): number {
  if (lossesMax === 0) return attempts;
  let lost = losses.includes(reason) ? 1 : 0;
  for (const each of losses) lost += failures?.[each] ?? 0;
  return attempts - Math.min(lost, lossesMax);
}

/** Doubles with each attempt. The jitter is derived from the token, so that every replay computes the same delay. */
export function backoffMs(template: TaskTemplate, task: Task, token: number): number {
  const full = Math.min(template.backoffMsMax, template.backoffMs * 2 ** Math.min(task.attempts - 1, 30));
  return Math.round(full * (0.5 + hash32(`${task.no}:${token}`) / 2 ** 33));
}

export const endAttempt = (
  claim: Claim,
  given: {
    readonly outcome: AttemptOutcome;
    readonly reason: FailReason;
    readonly message: string;
    readonly result?: Result | undefined;
    readonly next: Next;
    readonly nowMs: number;
  },
): Event => ({
  kind: "attempt-ended",
  task: claim.task.no,
  token: claim.token,
  outcome: claim.task.phase === "CANCELLING" ? "cancelled" : given.outcome,
  reason: given.reason,
  message: given.message,
  ...(given.result && { result: given.result }),
  next: given.next,
  at: given.nowMs,
});
