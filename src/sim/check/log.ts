/** What must hold for the log itself, event by event: K1 to K6 and K11, and locks. */
import type { Event, EventOf } from "#kernel/model/event.ts";
import type { Replies } from "#kernel/model/reply.ts";
import { claimName, type Checker, type Court, type LogPosition } from "./court.ts";
import { isLoss } from "#sim/model/tasks.ts";
import {
  isOver,
  liveClaims,
  type ModelClaim,
  type ModelStage,
  type ModelTask,
  type ShardModel,
} from "#sim/model/model.ts";

export const keysBindOnce: Checker = {
  invariant: "K1",
  promise: "a request key maps to at most one job while it is retained",
  event(_court, { model }, event) {
    if (event.kind !== "job-submitted" && event.kind !== "job-joined") return undefined;
    if (event.key === undefined) return undefined;
    const bound = model.keys.get(event.key);
    if (!bound || bound.job === event.job || bound.untilMs <= event.at) return undefined;
    return `${String(where(model, event))} binds ${JSON.stringify(event.key)} to job ${event.job}, it was job ${bound.job}'s`;
  },
};

export const claimsForReady: Checker = {
  invariant: "K2",
  promise: "a claim is granted for a READY attempt only, one live claim an attempt, two where speculation is allowed",
  event(_court, { model }, event) {
    if (event.kind === "speculated") return spares(model, event);
    if (event.kind !== "claimed") return undefined;
    const task = model.tasks.get(event.task);
    const at = where(model, event);
    if (!task) return `${String(at)}: task ${event.task} does not exist`;
    if (event.token <= model.tokenMax) return `${String(at)}: token ${event.token} is not newer than ${model.tokenMax}`;
    const live = liveClaims(task).length;
    if (task.standing === "ready" && live === 0) return parallel(task, at);
    const mayBeTwo = task.speculated && task.template.speculate && task.template.effects === "pure";
    if (task.standing === "claimed" && live === 1 && mayBeTwo) return undefined;
    return `${String(at)}: task ${task.no} is ${task.standing} with ${live} live claims`;
  },
};

function spares(model: ShardModel, event: EventOf<"speculated">): string | undefined {
  const task = model.tasks.get(event.task);
  const slots = task?.template.speculation?.slots;
  if (!task || slots === undefined) return undefined;
  const others = task.stage.tasks.filter((one) => one !== task && one.speculated && one.standing !== "over").length;
  return others >= slots
    ? `${String(where(model, event))}: ${others} tasks have a second attempt, ${slots} may`
    : undefined;
}

function parallel(task: ModelTask, at: EventLocation): string | undefined {
  const { stage } = task;
  if (stage.cancelled) return `${String(at)}: stage ${stage.index} is being cancelled`;
  const wanted = task.planning ? "READY" : "RUNNING";
  if (stage.phase !== wanted) return `${String(at)}: stage ${stage.index} is ${stage.phase}`;
  const { parallelMax, lock } = stage.spec;
  if (lock && stage.lock !== "held") return `${String(at)}: stage ${stage.index} does not hold ${lock.name}`;
  const own = task.template.lock;
  if (own && task.lock !== "held") return `${String(at)}: task ${task.no} does not hold ${own.name}`;
  const others = stage.tasks.filter((other) => other !== task && liveClaims(other).length > 0).length;
  if (!task.planning && parallelMax > 0 && others >= parallelMax && !isRedone(stage))
    return `${String(at)}: ${others} tasks run, ${parallelMax} may`;
  return undefined;
}

/** A lost result is made again at once, whatever else runs. */
const isRedone = (stage: ModelStage): boolean =>
  stage.tasks.some(({ generation }) => generation > stage.generation || generation > 1);

export const commitsUnderGuard: Checker = {
  invariant: "K3",
  promise: "a commit needs the token of a live attempt and pins on every blob that it names",
  event(court, { model, decidedAfterMs }, event) {
    const named = digestsIn(event);
    if (named === undefined) return undefined;
    const at = where(model, event);
    const { task: no, token } = event as { readonly task: number; readonly token?: number };
    const task = model.tasks.get(no);
    if (!task) return `${String(at)}: task ${no} does not exist`;
    if (event.kind === "reused" || token === undefined) return undefined;
    if (task.planning) return `${String(at)}: task ${task.no} is planning`;
    const claim = task.claims.get(token);
    if (!claim?.live) return `${String(at)}: token ${token} of task ${task.no} is ${claim ? "void" : "unknown"}`;
    const loose = named.find((digest) => court.pins.until(digest) < decidedAfterMs);
    return loose === undefined
      ? undefined
      : `${String(at)}: ${loose} was not pinned (until ${court.pins.until(loose)})`;
  },
};

/** The blobs that an event names; undefined for events that name none. */
function digestsIn(event: Event): readonly string[] | undefined {
  switch (event.kind) {
    case "committed":
    case "reused":
      return event.result.digests;
    case "checkpointed":
      return event.checkpoint.digests;
    case "attempt-ended":
      return event.result?.digests;
    default:
      return undefined;
  }
}

export const requeuesOnce: Checker = {
  invariant: "K4",
  promise: "only an expired or retryable attempt whose token matches is requeued, and its token is void for ever",
  event(_court, { model }, event) {
    const at = where(model, event);
    if (event.kind === "requeued") return requeue(model, event, at);
    if (!underToken(event)) return undefined;
    const task = model.tasks.get(event.task);
    const claim = task?.claims.get(event.token);
    if (!task || !claim?.live) return `${String(at)}: token ${event.token} of task ${event.task} is not live`;
    return event.kind === "attempt-ended" ? retry(task, event, at) : undefined;
  },
};

const underToken = (event: Event): event is EventOf<"attempt-ended" | "started" | "reported" | "checkpointed"> =>
  event.kind === "attempt-ended" ||
  event.kind === "started" ||
  event.kind === "reported" ||
  event.kind === "checkpointed";

function requeue(model: ShardModel, event: EventOf<"requeued">, at: EventLocation): string | undefined {
  const task = model.tasks.get(event.task);
  if (task?.standing !== "retry") return `${String(at)}: task ${event.task} is ${task?.standing ?? "unknown"}`;
  return event.at < task.retryAtMs ? `${String(at)}: ${task.retryAtMs - event.at}ms before its time` : undefined;
}

function retry(task: ModelTask, event: EventOf<"attempt-ended">, at: EventLocation): string | undefined {
  if (event.next.do !== "ready" && event.next.do !== "retry") return undefined;
  if (task.standing === "cancelling") return `${String(at)}: task ${task.no} is being cancelled`;
  if (liveClaims(task).length > 1) return `${String(at)}: another attempt of task ${task.no} goes on`;
  const { retryOn, attemptsMax, lossesMax = 0, retries } = task.template;
  const lost = Math.min(lossesMax, task.losses + (isLoss(event) ? 1 : 0));
  if (retries && event.outcome !== "released") {
    const count = retries[event.reason] ?? 0;
    if ((task.failures.get(event.reason) ?? 0) >= count)
      return `${String(at)}: ${count} attempts that end with ${event.reason} are followed by another, this is one more`;
  }
  const isMine = event.outcome === "failed" && event.reason === "user-failure";
  const final = isMine && !retries && retryOn === "infrastructure";
  if (final) return `${String(at)}: a user failure is not retried`;
  if (event.outcome !== "released" && task.attempts - lost >= attemptsMax)
    return `${String(at)}: it had its ${attemptsMax} attempts`;
  return undefined;
}

export const stagesInOrder: Checker = {
  invariant: "K5",
  promise: "a stage completes with all its results, and is planned once per generation",
  event(_court, { model }, event) {
    const at = where(model, event);
    switch (event.kind) {
      case "stage-ready":
        return ready(model.stage(event.job, event.stage), at);
      case "stage-planned":
      case "plan-closed":
        return planned(model, event, at);
      case "stage-ended":
        if (event.phase === "COMPLETED") return complete(model.stage(event.job, event.stage), at);
        return event.phase === "CANCELLED" ? spared(model.stage(event.job, event.stage), at) : undefined;
      case "job-ended":
        return jobEnd(model, event, at);
      default:
        return undefined;
    }
  },
};

function ready(stage: ModelStage | undefined, at: EventLocation): string | undefined {
  if (!stage) return `${String(at)}: no such stage`;
  if (stage.phase !== "BLOCKED") return `${String(at)}: the stage is ${stage.phase}`;
  for (const index of stage.spec.needs) {
    const need = stage.job.stages[index];
    if (!need || !isOver(need.phase)) return `${String(at)}: need ${index} is ${need?.phase}`;
    const met = need.phase === "COMPLETED" || (need.phase === "FAILED" && need.spec.mayFail);
    if (stage.spec.after === "success" && !met) return `${String(at)}: need ${index} is ${need.phase}`;
  }
  if (stage.spec.lock && stage.lock !== "held") return `${String(at)}: its lock is ${stage.lock}`;
  if (stage.job.lock && stage.job.lockState !== "held")
    return `${String(at)}: the job's lock is ${stage.job.lockState}`;
  return undefined;
}

function planned(
  model: ShardModel,
  event: EventOf<"stage-planned"> | EventOf<"plan-closed">,
  at: EventLocation,
): string | undefined {
  const stage =
    event.kind === "stage-planned" ? model.stage(event.job, event.stage) : model.tasks.get(event.task)?.stage;
  if (!stage) return `${String(at)}: no such stage`;
  const generation = event.kind === "stage-planned" ? event.generation : stage.generation;
  if (generation !== stage.generation) return `${String(at)}: for generation ${generation}, it is ${stage.generation}`;
  if (stage.plannedIn.has(generation)) return `${String(at)}: planned twice in generation ${generation}`;
  const claim = stage.planning?.claims.get(event.token);
  return claim?.live ? undefined : `${String(at)}: the planner's token ${event.token} is not live`;
}

function complete(stage: ModelStage | undefined, at: EventLocation): string | undefined {
  if (!stage) return `${String(at)}: no such stage`;
  if (isOver(stage.phase)) return `${String(at)}: it had ended ${stage.phase}`;
  const open = stage.tasks.find((task) => !task.results.has(task.generation));
  if (open) return `${String(at)}: task ${open.no} has no result in generation ${open.generation}`;
  if (stage.spec.plan && !stage.plannedIn.has(stage.generation)) return `${String(at)}: it was never planned`;
  return mixed(stage, at);
}

/** Consumers that ran on while results were made again have read what these are now. */
function mixed(stage: ModelStage, at: EventLocation): string | undefined {
  const ranOn = stage.job.stages.find(({ phase, spec }) => phase === "RUNNING" && spec.needs.includes(stage.index));
  const other = stage.tasks.find(({ blobs, generation }) => {
    const before = blobs.get(generation - 1);
    return before !== undefined && before !== blobs.get(generation);
  });
  return ranOn && other
    ? `${String(at)}: stage ${ranOn.index} runs on what task ${other.no} wrote in generation ${other.generation - 1}`
    : undefined;
}

/** A stage that runs after any end is not cancelled together with its job while the job's grace goes on. */
function spared(stage: ModelStage | undefined, at: EventLocation): string | undefined {
  if (!stage || stage.cancelled || stage.tasks.some(({ displaced }) => displaced)) return undefined;
  return `${String(at)}: nobody cancelled it`;
}

function jobEnd(model: ShardModel, event: EventOf<"job-ended">, at: EventLocation): string | undefined {
  const job = model.jobs.get(event.job);
  if (!job) return `${String(at)}: no such job`;
  if (isOver(job.phase)) return `${String(at)}: it had ended ${job.phase}`;
  const open = job.stages.find(({ phase }) => !isOver(phase));
  if (open) return `${String(at)}: stage ${open.index} is ${open.phase}`;
  const bad = job.stages.find(({ phase, spec }) => phase === "CANCELLED" || (phase === "FAILED" && !spec.mayFail));
  if (event.phase === "SUCCEEDED" && bad) return `${String(at)}: SUCCEEDED though stage ${bad.index} is ${bad.phase}`;
  const running = job.stages.flatMap(({ tasks }) => tasks).find((task) => liveClaims(task).length > 0);
  return running ? `${String(at)}: task ${running.no} has a live claim` : undefined;
}

export const oneResult: Checker = {
  invariant: "K6",
  promise: "at most one committed result per task and generation",
  event(_court, { model }, event) {
    if (event.kind === "invalidated") {
      const task = model.tasks.get(event.task);
      if (!task || event.generation <= task.generation)
        return `${String(where(model, event))}: the generation must grow`;
      return task.results.has(task.generation) ? undefined : `${String(where(model, event))}: there was no result`;
    }
    if (event.kind !== "committed" && event.kind !== "reused") return undefined;
    const task = model.tasks.get(event.task);
    if (!task?.results.has(task.generation)) return undefined;
    return `${String(where(model, event))}: task ${task.no} has a result in generation ${task.generation}`;
  },
};

/** Kernel time may run faster than the world while it catches up with the store's clock (a tenth at most). */
const leaseShare = 0.88;

export const timeIsFair: Checker = {
  invariant: "K11",
  promise: "time never runs backwards, and nobody who kept renewing is expired by a clock or a pause",
  event(court, place, event) {
    const { model } = place;
    if (!("at" in event)) return undefined;
    const at = where(model, event);
    if (event.at < model.atMs) return `${String(at)}: kernel time ${event.at} after ${model.atMs}`;
    if (event.kind === "took-over") return refreshAll(court, place);
    if (event.kind === "claimed" || event.kind === "started")
      court.begun.set(claimName(model.shard, event.task, event.token), place.decidedAfterMs);
    if (event.kind === "attempt-ended" && event.outcome === "timed-out") return cutShort(court, place, event);
    const isExpiry = (event.kind === "attempt-ended" && event.outcome === "expired") || event.kind === "claim-gone";
    if (!isExpiry) return undefined;
    const claim = model.claim(event.task, event.token);
    if (!claim || (event.kind === "claim-gone" && claim.gone)) return undefined;
    return tooSoon(court, place, event, claim);
  },
  said(court, { model, request, response }) {
    if (request.kind !== "command" || response.kind !== "reply") return undefined;
    const reached = court.renewals.get(request)?.reachedMs;
    if (reached === undefined) return undefined;
    // What a former owner promises after such a jump, its successor does not know.
    if (court.hasLeapt && response.stamp.epoch < (court.epochs[model.shard]?.epoch ?? 0)) return undefined;
    // No more than was promised: nothing of a lease is new once the attempt has had all its time.
    const promised = (task: number, token: number, promisedMs: number): void => {
      const leaseMs = model.claim(task, token)?.leaseMs ?? promisedMs;
      freshen(court, claimName(model.shard, task, token), reached - (leaseMs - promisedMs));
    };
    const { command } = request;
    if (command.kind === "start") promised(command.task, command.token, (response.reply as Replies["start"]).leaseMs);
    if (command.kind === "renew")
      for (const { task, token, leaseMs } of (response.reply as Replies["renew"]).held) promised(task, token, leaseMs);
    return undefined;
  },
};

function cutShort(
  court: Court,
  { model, decidedBeforeMs }: LogPosition,
  event: EventOf<"attempt-ended">,
): string | undefined {
  const attemptMs = model.tasks.get(event.task)?.template.attemptMs ?? 0;
  const beganMs = court.begun.get(claimName(model.shard, event.task, event.token)) ?? 0;
  const ranMs = decidedBeforeMs - beganMs;
  if (ranMs >= attemptMs * leaseShare || attemptMs === 0) return undefined;
  return `${String(where(model, event))}: timed out after ${Math.round(ranMs)}ms, it may run for ${attemptMs}ms`;
}

function freshen(court: Court, name: string, atMs: number): void {
  court.fresh.set(name, Math.max(court.fresh.get(name) ?? Number.NEGATIVE_INFINITY, atMs));
}

function refreshAll(court: Court, { model }: LogPosition): undefined {
  const atMs = court.epochs[model.shard]?.atMs ?? 0;
  for (const task of model.tasks.values())
    for (const { token, gone } of task.claims.values())
      if (!gone) freshen(court, claimName(model.shard, task.no, token), atMs);
}

function tooSoon(
  court: Court,
  place: LogPosition,
  event: Event & { at: number },
  claim: ModelClaim,
): string | undefined {
  const { model, by, decidedAfterMs, decidedBeforeMs } = place;
  const { task, token } = event as { task: number; token: number };
  const name = claimName(model.shard, task, token);
  let freshMs = court.fresh.get(name) ?? Number.NEGATIVE_INFINITY;
  const isOverdue =
    decidedAfterMs - (court.begun.get(name) ?? 0) >= (model.tasks.get(task)?.template.attemptMs ?? Infinity);
  for (const [request, { at, reachedMs }] of isOverdue ? [] : court.renewals) {
    if (at !== by || reachedMs >= decidedAfterMs || request.shard !== model.shard) continue;
    if (request.kind !== "command" || request.command.kind !== "renew") continue;
    if (request.command.executor === claim.executor) freshMs = Math.max(freshMs, reachedMs);
  }
  const agoMs = decidedBeforeMs - freshMs;
  if (agoMs >= claim.leaseMs * leaseShare) return undefined;
  // An executor may have said itself that it has stopped.
  if (event.kind === "claim-gone") return undefined;
  return `${String(where(model, event))}: expired ${Math.round(agoMs)}ms after it was fresh, its lease is ${claim.leaseMs}ms`;
}

export const locksOneAtATime: Checker = {
  invariant: "locks",
  promise: "a lock has no more holders than its limit, and is handed on only when all claims of its holder are over",
  event(_court, { model }, event) {
    if (event.kind !== "lock-queued" && event.kind !== "lock-granted" && event.kind !== "lock-freed") return undefined;
    const at = where(model, event);
    const job = model.jobs.get(event.job);
    const stage = event.stage === -1 ? undefined : job?.stages[event.stage];
    const task = event.task === undefined ? undefined : model.tasks.get(event.task);
    const lock = task ? task.template.lock : stage ? stage.spec.lock : job?.lock;
    if (!job || !lock) return `${String(at)}: it has no lock`;
    if (event.kind === "lock-queued") return undefined;
    if (event.kind === "lock-freed") {
      const stages = stage ? [stage] : job.stages;
      const tasks = task ? [task] : [...model.tasks.values()].filter((one) => stages.includes(one.stage));
      const open = tasks.find((one) => [...one.claims.values()].some(({ gone }) => !gone));
      return open ? `${String(at)}: a claim of task ${open.no} may still be running` : undefined;
    }
    const held = holders(model, job.tenant, lock.name);
    return held >= lock.limit
      ? `${String(at)}: ${lock.name} has ${held} holders, its limit is ${lock.limit}`
      : undefined;
  },
};

function holders(model: ShardModel, tenant: string, name: string): number {
  let held = 0;
  for (const job of model.jobs.values()) {
    if (job.tenant !== tenant) continue;
    if (job.lock?.name === name && job.lockState === "held") held += 1;
    for (const stage of job.stages) if (stage.spec.lock?.name === name && stage.lock === "held") held += 1;
  }
  for (const task of model.tasks.values())
    if (task.job.tenant === tenant && task.template.lock?.name === name && task.lock === "held") held += 1;
  return held;
}

/** Where in the log, for a complaint; written out only when there is one. */
export type EventLocation = { toString(): string };
export const where = (model: ShardModel, event: Event): EventLocation => ({
  toString: () => `shard ${model.shard} ${JSON.stringify(event)}`,
});
