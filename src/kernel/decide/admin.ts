/** Commands of shard owners, operators and other shards. */
import type { CommandOf } from "#kernel/model/command.ts";
import { accept, type Decision, reject } from "./decision.ts";
import type { Job, Slice } from "#kernel/model/entities.ts";
import { lockKey, placeIn } from "#kernel/ready/locks.ts";
import { cancelSoftly } from "#kernel/apply/cancelling.ts";
import { isJobOver, isStageOver, lentBy } from "#kernel/apply/moves.ts";
import type { State } from "#kernel/model/state.ts";
import { wrongChoice, wrongList, wrongText, wrongWhole } from "./validate.ts";
import { visibleJob } from "#kernel/read/visible.ts";

export function decideCancel(state: State, command: CommandOf<"cancel">, nowMs: number): Decision {
  const { reason, hard, stage, graceMs } = command;
  const wrong =
    wrongText("reason", reason, state.limits.messageLengthMax) ??
    (hard === undefined ? undefined : wrongChoice("hard", hard, [true, false])) ??
    (stage === undefined ? undefined : wrongWhole("stage", stage, 0, state.limits.stagesMax)) ??
    (graceMs === undefined ? undefined : wrongWhole("graceMs", graceMs, 0, state.limits.durationMsMax));
  if (wrong) return reject(wrong);
  const job = visibleJob(state, command);
  if (!job) return reject({ kind: "job-unknown", job: command.job });
  if (stage !== undefined) return cancelStage(job, stage, reason, nowMs);
  // Repeated, it changes nothing; only a hard one cuts the grace short.
  if (isJobOver(job) || (job.cancelled && !(hard && job.graceUntilMs > 0))) return accept({ phase: job.phase });
  const phase = job.cancelled ?? "CANCELLED";
  return accept({ phase: "CANCELLING" }, [
    hard
      ? { kind: "job-cancelling", job: job.no, phase, reason, at: nowMs }
      : cancelSoftly(state, job, { phase, reason, graceMs }, nowMs),
  ]);
}

function cancelStage(job: Job, index: number, reason: string, nowMs: number): Decision {
  const stage = job.stages[index];
  if (!stage) return reject({ kind: "stage-unknown", job: job.no, stage: index });
  if (isJobOver(job) || isStageOver(stage) || stage.cancelled) return accept({ phase: job.phase });
  return accept({ phase: job.phase }, [
    { kind: "stage-cancelling", job: job.no, stage: index, phase: "CANCELLED", reason, at: nowMs },
  ]);
}

export function decideDrain(state: State, command: CommandOf<"drain">): Decision {
  const wrong =
    wrongText("executor", command.executor, state.limits.nameLengthMax, 1) ??
    wrongText("reason", command.reason, state.limits.messageLengthMax);
  if (wrong) return reject(wrong);
  const executor = state.executors.get(command.executor);
  if (executor?.drained?.untilMs === Number.MAX_SAFE_INTEGER) return accept({ draining: true });
  if (!executor && state.executors.size >= state.limits.executorsMax)
    return reject({ kind: "shard-full", what: "executors", retryAfterMs: state.limits.retryAfterMs });
  return accept({ draining: true }, [
    {
      kind: "executor-drained",
      executor: command.executor,
      reason: command.reason,
      untilMs: Number.MAX_SAFE_INTEGER,
    },
  ]);
}

export function decideResume(state: State, command: CommandOf<"resume">): Decision {
  const executor = state.executors.get(command.executor);
  if (!executor?.drained) return accept({ resumed: false });
  return accept({ resumed: true }, [{ kind: "executor-resumed", executor: command.executor }]);
}

export function decideSetTenant(state: State, command: CommandOf<"set-tenant">): Decision {
  const { limits } = state;
  const wrong =
    wrongText("tenant", command.tenant, limits.nameLengthMax, 1) ??
    wrongWhole("weight", command.weight, 1, 10_000) ??
    wrongWhole("runningMax", command.runningMax, 0, 10_000_000) ??
    wrongWhole("queuedMax", command.queuedMax, 0, 10_000_000) ??
    wrongWhole("home", command.home, 0, 65_535);
  if (wrong) return reject(wrong);
  const { tenant: name, weight, runningMax, queuedMax, home } = command;
  const tenant = state.tenants.get(name);
  if (!tenant && state.tenants.size >= limits.tenantsMax)
    return reject({ kind: "shard-full", what: "tenants", retryAfterMs: limits.retryAfterMs });
  const same =
    tenant &&
    tenant.weight === weight &&
    tenant.runningMax === runningMax &&
    tenant.queuedMax === queuedMax &&
    tenant.home === home;
  if (same) return accept({ changed: false });
  return accept({ changed: true }, [{ kind: "tenant-set", tenant: name, weight, runningMax, queuedMax, home }]);
}

/**
 * The home shard lends slots: first those that the borrower's claims already use, then a fair part of the free ones.
 */
export function decideLend(state: State, command: CommandOf<"lend-quota">, nowMs: number): Decision {
  const wrong =
    wrongWhole("borrower", command.borrower, 0, 65_535) ??
    wrongWhole("want", command.want, 0, 10_000_000) ??
    wrongWhole("running", command.running, 0, 10_000_000) ??
    wrongWhole("forMs", command.forMs, 1, state.limits.leaseMsMax) ??
    wrongWhole("holds", command.holds ?? 0, 0, Number.MAX_SAFE_INTEGER);
  if (wrong) return reject(wrong);
  const tenant = state.tenants.get(command.tenant);
  const { borrower, want, running, holds } = command;
  if (!tenant || tenant.runningMax === 0 || tenant.home !== state.shard || borrower === state.shard)
    return reject({ kind: "invalid", path: "tenant", why: "this shard lends no quota for the tenant" });
  const free = tenant.runningMax - lentBy(state, tenant, borrower) - tenant.running;
  const isAtTable = ([other, slices]: readonly [number, readonly Slice[]]): boolean =>
    other !== borrower && slices.some(({ untilMs }) => untilMs > nowMs);
  const atTable = [...tenant.lent].filter(isAtTable).length + 1;
  const fair = Math.ceil(tenant.runningMax / (atTable + (tenant.ready + tenant.running > 0 ? 1 : 0)));
  const slots = Math.max(0, Math.min(free, Math.max(running, Math.min(want, fair))));
  // A borrower that needs no slots does not count among those that share them.
  const forMs = want + running === 0 ? 0 : command.forMs;
  const slice = Math.max(nowMs, tenant.sliceNo + 1);
  const lent = { tenant: tenant.name, borrower, slots, untilMs: nowMs + forMs, slice, at: nowMs };
  return accept({ slots, forMs, slice }, [{ kind: "quota-lent", ...lent, ...(holds !== undefined && { holds }) }]);
}

export function decideTakeQuota(state: State, command: CommandOf<"take-quota">, nowMs: number): Decision {
  const wrong =
    wrongWhole("slots", command.slots, 0, 10_000_000) ?? wrongWhole("forMs", command.forMs, 1, state.limits.leaseMsMax);
  if (wrong) return reject(wrong);
  if (!state.tenants.has(command.tenant))
    return reject({ kind: "invalid", path: "tenant", why: "not known in this shard" });
  return accept({ slots: command.slots }, [
    { kind: "quota-taken", tenant: command.tenant, slots: command.slots, untilMs: nowMs + command.forMs },
  ]);
}

/**
 * Forgets only jobs that have ended, without any claim left (a lock may still wait for one), with all results
 * published and their end told.
 */
export function decideForget(state: State, command: CommandOf<"forget">): Decision {
  const wrong = wrongList("jobs", command.jobs, 100_000);
  if (wrong) return reject(wrong);
  const jobs = [...new Set(command.jobs)].filter((no) => {
    const job = state.jobs.get(no);
    return (
      job && isJobOver(job) && job.claims === 0 && !job.outbox && !state.telling.has(job) && !holdsLock(state, job)
    );
  });
  return accept({ forgotten: jobs.length }, jobs.length === 0 ? [] : [{ kind: "forgotten", jobs }]);
}

export function decideTakeOver(state: State, command: CommandOf<"take-over">, nowMs: number): Decision {
  const wrong =
    wrongWhole("epoch", command.epoch, 1, Number.MAX_SAFE_INTEGER) ??
    wrongText("node", command.node, state.limits.nameLengthMax);
  if (wrong) return reject(wrong);
  if (command.epoch <= state.epoch)
    return reject({ kind: "invalid", path: "epoch", why: `must be greater than ${state.epoch}` });
  return accept({ claims: state.claims }, [{ kind: "took-over", epoch: command.epoch, node: command.node, at: nowMs }]);
}

/** A lock that is about to be passed on still names its holder. */
function holdsLock(state: State, job: Job): boolean {
  if (job.stages.some((stage) => stage.lockState !== "none")) return true;
  if (state.locks.tasks.values().some(({ task }) => task.stage.job === job)) return true;
  const lock = job.lock && state.locks.byKey.get(lockKey(job.tenant, job.lock.name));
  return lock !== undefined && placeIn(lock.holders, { job, stage: undefined }) !== -1;
}
