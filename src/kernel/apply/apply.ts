/**
 * The only mutator. Reads every event ever written. Everything was decided when the event was made: `apply` must not
 * look at limits, and must not fail on any event that `decide` produced.
 */
import { unreachable } from "#base/assert.ts";
import { applyManifestDue, applyManifestWritten } from "./manifest.ts";
import { applyJobJoined, applyJobLeft, applyJobSubmitted, applyForgotten } from "./job.ts";
import { applyCancelling, applyJobEnded, applyStageEnded, applyStagePlanned, applyStageReady } from "./stage.ts";
import { applyLockFreed, applyLockGranted, applyLockQueued } from "./lock.ts";
import { applyStageReopened, applyTaskDisplaced } from "./stage.ts";
import { applyNotified } from "./notice.ts";
import { applyPublished, applyPublishingGivenUp } from "./publish.ts";
import {
  applyAttemptEnded,
  applyCheckpointed,
  applyClaimed,
  applyClaimGone,
  applyCommitted,
  applyInvalidated,
  applyPlanClosed,
  applyReported,
  applyRestFailed,
  applyReused,
  applyStarted,
  applyTaskFailed,
} from "./task.ts";
import type { Tenant } from "#kernel/model/entities.ts";
import type { Event, EventOf } from "#kernel/model/event.ts";
import { beforeChange, checkQuota, dropClaim, fileClaim, gateOf, toReady, toTimed, waitFor } from "./moves.ts";
import type { State } from "#kernel/model/state.ts";
import { bytesOfSignal } from "#kernel/memory/weigh.ts";

export function apply(state: State, event: Event): void {
  const wasMs = state.nowMs;
  if ("at" in event && event.at > state.nowMs) state.nowMs = event.at;
  if (state.superseded.length > 0) state.superseded = [];
  switch (event.kind) {
    case "took-over":
      state.epoch = event.epoch;
      return refreshLeases(state, event.at, state.nowMs - wasMs);
    case "tenant-set": {
      const tenant = state.tenant(event.tenant);
      state.ready.setWeight(tenant, event.weight);
      tenant.runningMax = event.runningMax;
      tenant.queuedMax = event.queuedMax;
      tenant.home = event.home;
      return checkQuota(state, tenant);
    }
    case "quota-lent": {
      const tenant = state.tenant(event.tenant);
      lend(tenant, event);
      state.agenda.file(tenant, event.untilMs, state.nowMs);
      return checkQuota(state, tenant);
    }
    case "quota-taken": {
      const tenant = state.tenant(event.tenant);
      tenant.slice = { slots: event.slots, untilMs: event.untilMs };
      state.agenda.file(tenant, event.untilMs, state.nowMs);
      return checkQuota(state, tenant);
    }
    case "job-submitted":
      return applyJobSubmitted(state, event);
    case "job-joined":
      return applyJobJoined(state, event);
    case "job-left":
      return applyJobLeft(state, event);
    case "lock-queued":
      return applyLockQueued(state, event);
    case "lock-granted":
      return applyLockGranted(state, event);
    case "lock-freed":
      return applyLockFreed(state, event);
    case "task-displaced":
      return applyTaskDisplaced(state, event);
    case "stage-ready":
      return applyStageReady(state, event);
    case "stage-planned":
      return applyStagePlanned(state, event);
    case "plan-waiting": {
      const task = state.task(event.task);
      beforeChange(state, task);
      beforeChange(state, task.stage);
      if (task.claim) dropClaim(state, task.claim);
      // A planner that asks to be called again later has not failed: do not count the attempt.
      task.attempts -= 1;
      task.resultToken = event.token;
      waitFor(state, task.stage, event.signals);
      return toTimed(state, task, "WAITING", event.untilMs);
    }
    case "plan-closed":
      return applyPlanClosed(state, event);
    case "signalled": {
      const stage = state.stage(event.job, event.stage);
      beforeChange(state, stage);
      const { id, name, payload, by, at: atMs } = event;
      const signal = by === undefined ? { id, name, payload, atMs } : { id, name, payload, by, atMs };
      gateOf(stage).signals.push(signal);
      return state.grow(stage.job, bytesOfSignal(signal));
    }
    case "plan-woken":
    case "requeued": {
      const task = state.task(event.task);
      beforeChange(state, task);
      beforeChange(state, task.stage);
      waitFor(state, task.stage, []);
      return toReady(state, task, event.at);
    }
    case "stage-cancelling":
    case "job-cancelling":
      return applyCancelling(state, event);
    case "stage-ended":
      return applyStageEnded(state, event);
    case "stage-reopened":
      return applyStageReopened(state, event);
    case "claimed":
      return applyClaimed(state, event);
    case "started":
      return applyStarted(state, event);
    case "reported":
      return applyReported(state, event);
    case "committed":
      return applyCommitted(state, event);
    case "published":
      return applyPublished(state, event);
    case "publishing-given-up":
      return applyPublishingGivenUp(state, event);
    case "reused":
      return applyReused(state, event);
    case "attempt-ended":
      return applyAttemptEnded(state, event);
    case "checkpointed":
      return applyCheckpointed(state, event);
    case "claim-gone":
      return applyClaimGone(state, event);
    case "task-failed":
      return applyTaskFailed(state, event);
    case "invalidated":
      return applyInvalidated(state, event);
    case "rest-failed":
      return applyRestFailed(state, event);
    case "manifest-due":
      return applyManifestDue(state, event);
    case "manifest-written":
      return applyManifestWritten(state, event);
    case "speculated": {
      const task = state.task(event.task);
      beforeChange(state, task);
      if (!task.speculated && task.stage.pace) task.stage.pace.spares += 1;
      task.speculated = true;
      return state.ready.offerSpare(task);
    }
    case "job-ended":
      return applyJobEnded(state, event);
    case "notified":
      return applyNotified(state, event);
    case "forgotten":
      return applyForgotten(state, event);
    case "executor-drained": {
      const executor = state.executor(event.executor);
      executor.drained = { reason: event.reason, untilMs: event.untilMs };
      return state.weighExecutor(executor);
    }
    case "executor-resumed": {
      const executor = state.executor(event.executor);
      executor.drained = undefined;
      executor.failures = 0;
      state.weighExecutor(executor);
      // Once resumed, the executor may be forgotten like any other; the next look at it sets the time.
      return state.agenda.file(executor, state.nowMs, state.nowMs);
    }
    default:
      return unreachable(event);
  }
}

/**
 * Renewals are not logged, so a new owner cannot know which executors are late: every live claim gets a full new lease.
 * Time during which the shard had no owner, or by which the clock jumped, does not count against an attempt.
 */
export function refreshLeases(state: State, at: number, sleptMs: number): void {
  for (const executor of state.executors.values()) {
    executor.seenAtMs = Math.max(executor.seenAtMs, at);
    state.agenda.file(executor, at + state.limits.executorFadeMs, state.nowMs);
    for (const claim of executor.claims.values()) {
      claim.expiresAtMs = Math.max(claim.expiresAtMs, at + claim.leaseMs);
      claim.sleptMs += sleptMs;
      fileClaim(state, claim);
    }
  }
}

function lend(tenant: Tenant, event: EventOf<"quota-lent">): void {
  const { borrower, slots, untilMs, slice: no, holds = 0, at = 0 } = event;
  if (no !== undefined) tenant.sliceNo = no;
  const before = tenant.lent.get(borrower) ?? [];
  const counting = before.filter(
    (slice) =>
      slice.untilMs > at &&
      (slice.no === undefined || slice.no >= holds) &&
      (slice.slots > slots || slice.untilMs > untilMs),
  );
  if (untilMs > at) counting.push(no === undefined ? { slots, untilMs } : { slots, untilMs, no });
  if (counting.length > 0) tenant.lent.set(borrower, counting);
  else tenant.lent.delete(borrower);
}
