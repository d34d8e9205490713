/**
 * Decides what happens to things that have come due: a lease, a time limit, a deadline, the end of a back-off or of a
 * wait.
 */
import { assert, missing } from "#base/assert.ts";
import { failAttempt } from "./finish.ts";
import { Claim, Executor, Job, Task, Tenant } from "#kernel/model/entities.ts";
import type { Event, SoftEvent } from "#kernel/model/event.ts";
import { cancelSoftly, jobDueAtMs } from "#kernel/apply/cancelling.ts";
import { tellsUntilMs } from "#kernel/apply/notice.ts";
import { attemptMsOf, giveUpAtMsOf, isJobOver, limitAtMsOf, planEndsAtMs } from "#kernel/apply/moves.ts";
import type { Speculation } from "#kernel/model/model.ts";
import { percentileMs } from "#kernel/model/pace.ts";
import type { Due, State } from "#kernel/model/state.ts";

export type DueDecision = {
  readonly events: readonly Event[];
  readonly soft: readonly SoftEvent[];
  /** When to look again; undefined for never. */
  readonly againAtMs: number | undefined;
};

const nothing: DueDecision = { events: [], soft: [], againAtMs: undefined };
const at = (againAtMs: number): DueDecision => ({ events: [], soft: [], againAtMs });
const does = (...events: readonly Event[]): DueDecision => ({ events, soft: [], againAtMs: undefined });

export function decideDue(state: State, item: Due, nowMs: number): DueDecision {
  if (item instanceof Claim) return claimDue(state, item, nowMs);
  if (item instanceof Task) return taskDue(state, item, nowMs);
  if (item instanceof Job) return isJobOver(item) ? endedJobDue(state, item, nowMs) : jobDue(state, item, nowMs);
  if (item instanceof Tenant) return tenantDue(state, item, nowMs);
  assert(item instanceof Executor, "only things that can come due are filed");
  return executorDue(state, item, nowMs);
}

function claimDue(state: State, claim: Claim, nowMs: number): DueDecision {
  const { task } = claim;
  assert(claim.executor.claims.get(claim.token) === claim, "a claim that has ended is not looked at again");
  if (claim.expiresAtMs <= nowMs) {
    if (claim.void)
      return does({
        kind: "claim-gone",
        task: task.no,
        token: claim.token,
        executor: claim.executor.id,
        at: nowMs,
      });
    // K4: the lease has expired; its token is void for ever.
    return expire(state, claim, "expired", "executor-lost", "the lease ran out without renewal", nowMs);
  }
  if (claim.void) return at(claim.expiresAtMs);
  const limitAtMs = limitAtMsOf(claim);
  if (limitAtMs <= nowMs && task.phase !== "CANCELLING")
    return expire(state, claim, "timed-out", "timed-out", `ran for ${attemptMsOf(task)} ms`, nowMs);
  const againAtMs = Math.min(claim.expiresAtMs, limitAtMs <= nowMs ? claim.expiresAtMs : limitAtMs);
  const { speculate } = task.template;
  if (!speculate || task.speculated || task.phase !== "RUNNING" || task.stage.cancelled) return at(againAtMs);
  const lagsAtMs = straggles(state, claim);
  if (lagsAtMs <= nowMs) return { ...does({ kind: "speculated", task: task.no, at: nowMs }), againAtMs };
  return at(Math.min(againAtMs, Math.max(nowMs + 1_000, lagsAtMs)));
}

function expire(
  state: State,
  claim: Claim,
  outcome: "expired" | "timed-out",
  reason: "executor-lost" | "timed-out",
  message: string,
  nowMs: number,
): DueDecision {
  const decision = failAttempt(state, claim, { outcome, reason, message, nowMs });
  const againAtMs = outcome === "timed-out" ? claim.expiresAtMs : undefined;
  return { events: decision.events, soft: [], againAtMs };
}

/**
 * The time from which the attempt counts as a straggler; the next look at the earliest while too few siblings are done.
 */
function straggles(state: State, claim: Claim): number {
  const { stage, template } = claim.task;
  if (template.speculation) return lagsBy(template.speculation, claim, state.nowMs);
  const { speculateShare, speculateFactor } = state.limits;
  // Reused results count as done, but took no time to run: they do not count in the mean.
  if (stage.runs === 0 || stage.done < stage.size * speculateShare) return Number.MAX_SAFE_INTEGER;
  const meanMs = stage.runMsSum / stage.runs;
  return claim.startedAtMs + Math.max(100, meanMs * speculateFactor);
}

/** How soon to look again while too few siblings are done, or all slots are taken. */
const lookAgainMs = 5_000;

/** The same by the rule of the task's own template. */
function lagsBy(
  { percentile, factorPercent, slots }: Speculation,
  { task, startedAtMs }: Claim,
  nowMs: number,
): number {
  const { done, pace } = task.stage;
  const isEarly = done * 100 < task.stage.size * percentile;
  if (!pace || isEarly || pace.spares >= slots) return nowMs + lookAgainMs;
  return startedAtMs + Math.max(100, (percentileMs(pace, percentile) * factorPercent) / 100);
}

/**
 * Until when an attempt with outside effects that timed out may go on. A change of owner gives it a whole lease again,
 * because the new owner does not know how much time has passed (K2, K11).
 */
function runsOnUntilMs(state: State, { template, last }: Task): number {
  if (template.effects !== "outside" || !last) return 0;
  const claim = state.executors.get(last.executor)?.claims.get(last.token);
  return claim?.void ? claim.expiresAtMs : 0;
}

function taskDue(state: State, task: Task, nowMs: number): DueDecision {
  const endsAtMs = planEndsAtMs(task);
  const isLate = endsAtMs <= nowMs && !task.claim;
  if (isLate) return does({ kind: "task-failed", task: task.no, reason: "no plan within its deadline", at: nowMs });
  switch (task.phase) {
    case "RETRY_PENDING": {
      const dueAtMs = Math.max(task.dueAtMs, runsOnUntilMs(state, task));
      if (dueAtMs > nowMs) return at(Math.min(dueAtMs, endsAtMs));
      return does({ kind: "requeued", task: task.no, at: nowMs });
    }
    case "WAITING":
      if (task.dueAtMs > nowMs) return at(Math.min(task.dueAtMs, endsAtMs));
      return does({ kind: "plan-woken", task: task.no, at: nowMs });
    case "READY": {
      const dueAtMs = task.queuedAtMs + task.template.queueMs;
      if (dueAtMs > nowMs) return at(Math.min(dueAtMs, endsAtMs));
      const reason = `no executor took it within ${task.template.queueMs} ms`;
      const failed = { kind: "task-failed", task: task.no, reason, at: nowMs } as const;
      // The tasks that are not queued yet would wait as long again, and would be queued when this one fails.
      if (task.array && task.array.unborn > 0)
        return does({ kind: "rest-failed", array: task.array.no, from: task.array.next, reason, at: nowMs }, failed);
      return does(failed);
    }
    default:
      return missing(`anything due of a task that is ${task.phase}`);
  }
}

function jobDue(state: State, job: Job, nowMs: number): DueDecision {
  const dueAtMs = jobDueAtMs(job);
  if (dueAtMs > nowMs) return Number.isFinite(dueAtMs) ? at(dueAtMs) : nothing;
  const cancel = (phase: "CANCELLED" | "FAILED", reason: string): DueDecision =>
    does({ kind: "job-cancelling", job: job.no, phase, reason, at: nowMs });
  // K9: every job ends, by its deadline at the latest, and a cancelled one with its grace.
  if (job.cancelled) return cancel(job.cancelled, job.reason);
  if (job.deadlineAtMs <= nowMs) return cancel("FAILED", lateReason(job));
  return does(cancelSoftly(state, job, { phase: "CANCELLED", reason: "nobody waits for it any more" }, nowMs));
}

const lateReason = ({ outbox, stagesOpen }: Job): string =>
  outbox && stagesOpen === 0
    ? `the job's deadline has passed before ${outbox.size} of its results were published`
    : "the job's deadline has passed";

/** The job has ended; only results that could not be published are left of it. */
function endedJobDue(state: State, job: Job, nowMs: number): DueDecision {
  if (job.outbox) {
    const giveUpAtMs = giveUpAtMsOf(state, job);
    if (giveUpAtMs > nowMs) return at(giveUpAtMs);
    const againAtMs = state.telling.has(job) ? tellsUntilMs(state, job) : undefined;
    return { ...does({ kind: "publishing-given-up", job: job.no, at: nowMs }), againAtMs };
  }
  if (!state.telling.has(job)) return nothing;
  const untilMs = tellsUntilMs(state, job);
  if (untilMs > nowMs) return at(untilMs);
  const owed = job.extras?.owed ?? [];
  return does(...owed.map((notice) => notified(job, notice, nowMs)));
}

const notified = ({ no }: Job, notice: number, nowMs: number): Event => ({
  kind: "notified",
  job: no,
  notice,
  outcome: "given-up",
  at: nowMs,
});

/** A quota slice has ended: the caller checks the tenant's quota again. */
function tenantDue(state: State, tenant: Tenant, nowMs: number): DueDecision {
  const ends = [...[...tenant.lent.values()].flat(), tenant.slice]
    .map(({ untilMs }) => untilMs)
    .filter((end) => end > nowMs);
  const soft: SoftEvent[] = [{ kind: "quota-passed", tenant: tenant.name }];
  return { events: [], soft, againAtMs: ends.length === 0 ? undefined : Math.min(...ends) };
}

function executorDue(state: State, executor: Executor, nowMs: number): DueDecision {
  const fadesAtMs = executor.seenAtMs + state.limits.executorFadeMs;
  const { drained } = executor;
  const keepUntilMs = Math.max(fadesAtMs, drained && drained.untilMs < Number.MAX_SAFE_INTEGER ? drained.untilMs : 0);
  if (executor.claims.size > 0 || keepUntilMs > nowMs) return at(Math.max(keepUntilMs, nowMs + 1_000));
  // An executor drained by an operator is remembered until the operator resumes it.
  if (drained && drained.untilMs === Number.MAX_SAFE_INTEGER) return nothing;
  return { events: [], soft: [{ kind: "executors-faded", executors: [executor.id] }], againAtMs: undefined };
}
