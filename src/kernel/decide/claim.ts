/** Handing out work under a lease, and keeping it. */
import type { CommandOf, Tokened } from "#kernel/model/command.ts";
import { accept, type Decision, reject } from "./decision.ts";
import type { Claim, Executor, LastEnd, Task } from "#kernel/model/entities.ts";
import type { EventOf, Next } from "#kernel/model/event.ts";
import type { Grant, HeldClaim, Step } from "#kernel/model/model.ts";
import type { Rejection } from "#kernel/model/rejection.ts";
import { limitAtMsOf, slotsOf } from "#kernel/apply/moves.ts";
import { noRoomForMore } from "#kernel/memory/room.ts";
import type { State } from "#kernel/model/state.ts";
import { wrongChoice, wrongLabels, wrongList, wrongSteps, wrongText, wrongTexts, wrongWhole } from "./validate.ts";
import { visibleTask } from "#kernel/read/visible.ts";
import { bytesOfStep } from "#kernel/memory/weigh.ts";

type Reserve = CommandOf<"reserve">;

export function wrongReserve(state: State, command: Reserve, nowMs: number): Rejection | undefined {
  const { limits } = state;
  const wrong =
    wrongText("executor", command.executor, limits.nameLengthMax, 1) ??
    wrongText("nonce", command.nonce, limits.nameLengthMax) ??
    wrongLabels("offers", command.offers, limits) ??
    wrongTexts("prefer", command.prefer, limits) ??
    wrongWhole("count", command.count, 1, limits.reserveCountMax) ??
    wrongChoice("start", command.start, [true, false, "pure"]) ??
    (command.tenant === undefined ? undefined : wrongText("tenant", command.tenant, limits.nameLengthMax, 1));
  if (wrong) return wrong;
  const executor = state.executors.get(command.executor);
  if (!executor && state.executors.size >= limits.executorsMax)
    return { kind: "shard-full", what: "executors", retryAfterMs: limits.retryAfterMs };
  // Some are always let in: without executors no work ends, and no memory comes free.
  if (!executor && state.executors.size >= limits.executorsAlways && !state.memory.hasRoomForAll(0))
    return { kind: "shard-full", what: "memory", retryAfterMs: limits.retryAfterMs };
  if (executor?.drained && executor.drained.untilMs > nowMs)
    return { kind: "executor-drained", executor: executor.id, reason: executor.drained.reason };
  return undefined;
}

/** What the same request was given before, as far as it still lives; undefined when it is new. */
export function grantedBefore(state: State, command: Reserve): readonly Grant[] | undefined {
  const executor = state.executors.get(command.executor);
  if (!executor || command.nonce === "" || executor.nonce !== command.nonce) return undefined;
  return executor.granted.flatMap((token) => {
    const claim = executor.claims.get(token);
    return claim && !claim.void ? [grantOf(claim)] : [];
  });
}

/** One grant: the next task in fair order, under a new token. Asked again until it has nothing, or enough. */
export function decideGrant(
  state: State,
  command: Reserve,
  executor: Executor,
  nowMs: number,
): EventOf<"claimed"> | undefined {
  const tenant = command.tenant === undefined ? undefined : state.tenants.get(command.tenant);
  if (command.tenant !== undefined && !tenant) return undefined;
  const signature = state.ready.signature(command.offers);
  const task = state.ready.pick(executor, signature, {
    tenant,
    prefer: command.prefer,
    lookahead: state.limits.preferLookahead,
  });
  if (!task) return undefined;
  // A slice of quota that has just run out is noticed by the next tick; until then nothing is granted on it.
  const owner = task.stage.job.tenant;
  if (owner.running >= slotsOf(state, owner)) return undefined;
  return {
    kind: "claimed",
    task: task.no,
    token: state.nextToken,
    executor: command.executor,
    leaseMs: task.template.leaseMs,
    started: command.start === "pure" ? task.template.effects === "pure" : command.start,
    nonce: command.nonce,
    at: nowMs,
  };
}

export function grantOf(claim: Claim): Grant {
  const { task } = claim;
  const { stage, template } = task;
  const { job } = stage;
  return {
    task: task.no,
    token: claim.token,
    job: job.no,
    stage: stage.index,
    stageName: stage.shape.name,
    tenant: job.tenant.name,
    door: job.door,
    kind: template.kind,
    key: task.plan.key,
    spec: task.plan.spec,
    planning: task === stage.planning,
    generation: task.generation,
    attempt: task.attempts,
    leaseMs: claim.leaseMs,
    graceMs: template.graceMs,
    attemptMs: template.attemptMs,
    effects: template.effects,
    outOfMemory: task.outOfMemory,
  };
}

/** The live claim that the token stands for, or why it does not stand for one. A token is its executor's own. */
export function findClaim(
  state: State,
  command: Tokened,
): { readonly claim: Claim } | { readonly claim: undefined; readonly task: Task | undefined; why: Rejection } {
  const task = visibleTask(state, command);
  if (!task) return { claim: undefined, task, why: { kind: "task-unknown", task: command.task } };
  const claim = task.claim?.token === command.token ? task.claim : task.second;
  if (claim?.token === command.token && claim.executor.id === command.executor) return { claim };
  return { claim: undefined, task, why: staleToken(task, command.token) };
}

export const staleToken = (task: Task, offered: number): Rejection => ({
  kind: "token-stale",
  task: task.no,
  offered,
  current: task.claim?.token ?? task.last?.token ?? 0,
});

/** A task is CANCELLED when none of its attempts can be running any more, and not before. */
export const whenCancelling = (task: Task): Next => ({ do: task.second ? "nothing" : "cancel" });

/** The attempt came to its end while its task was being cancelled: whoever repeats what ended it hears so again. */
export const wasCancelled = (task: Task, command: Tokened): boolean => endedBy(task, command)?.outcome === "cancelled";

/** How the attempt that the token stands for ended, if it was the last to end. A token is its executor's own. */
export const endedBy = (task: Task | undefined, { executor, token }: Tokened): LastEnd | undefined =>
  task?.last?.token === token && task.last.executor === executor ? task.last : undefined;

export function decideStart(state: State, command: CommandOf<"start">, nowMs: number): Decision {
  const found = findClaim(state, command);
  if (!found.claim) return reject(found.why);
  const { claim } = found;
  const { task } = claim;
  if (task.phase === "CANCELLING") return reject(wrongPhase(task, "to start"));
  // Saying it again brings no new lease: what is left of it is all that may be promised.
  if (claim.startedAtMs !== 0) return accept({ leaseMs: Math.max(0, claim.expiresAtMs - nowMs) });
  return accept({ leaseMs: claim.leaseMs }, [{ kind: "started", task: task.no, token: claim.token, at: nowMs }]);
}

/** A sync rather than a request: whatever the executor believed, it now hears all that it holds. */
export function decideRenew(state: State, command: CommandOf<"renew">, nowMs: number): Decision {
  const wrong =
    wrongText("executor", command.executor, state.limits.nameLengthMax, 1) ??
    wrongList("claims", command.claims, state.limits.renewClaimsMax);
  if (wrong) return reject(wrong);
  const executor = state.executors.get(command.executor);
  const held: HeldClaim[] = [];
  for (const claim of executor?.claims.values() ?? [])
    if (!claim.void)
      held.push({
        task: claim.task.no,
        token: claim.token,
        leaseMs: nowMs < limitAtMsOf(claim) ? claim.leaseMs : Math.max(0, claim.expiresAtMs - nowMs),
        started: claim.startedAtMs !== 0,
        cancelling: claim.task.phase === "CANCELLING",
      });
  const lost = command.claims.filter(({ task, token }) => {
    const claim = executor?.claims.get(token);
    return !claim || claim.void || claim.task.no !== task;
  });
  if (!executor) return accept({ held, lost });
  const silent = lost.filter(({ token }) => executor.claims.has(token)).map(({ token }) => token);
  return accept({ held, lost }, [], [{ kind: "renewed", executor: executor.id, silent, at: nowMs }]);
}

export function decideRelease(state: State, command: CommandOf<"release">, nowMs: number): Decision {
  const found = findClaim(state, command);
  if (!found.claim) {
    const last = endedBy(found.task, command);
    const again = last?.outcome === "released" || last?.outcome === "cancelled";
    return again ? accept({ released: true }) : reject(found.why);
  }
  const { task } = found.claim;
  // Without effects outside it is as if it had never run.
  if (found.claim.startedAtMs !== 0 && task.template.effects !== "pure")
    return reject(wrongPhase(task, "unstarted, to be released"));
  const cancelling = task.phase === "CANCELLING";
  return accept({ released: true }, [
    {
      kind: "attempt-ended",
      task: task.no,
      token: command.token,
      outcome: cancelling ? "cancelled" : "released",
      reason: cancelling ? "cancelled" : "preempted",
      message: found.claim.startedAtMs === 0 ? "given back unstarted" : "given back",
      next: cancelling ? whenCancelling(task) : { do: task.second ? "nothing" : "ready" },
      at: nowMs,
    },
  ]);
}

export function decideReport(state: State, command: CommandOf<"report">, nowMs: number): Decision {
  const wrong = wrongSteps(command.steps, state.limits);
  if (wrong) return reject(wrong);
  const found = findClaim(state, command);
  if (!found.claim) return reject(found.why);
  const { task } = found.claim;
  const known = task.steps ?? [];
  const news = command.steps.filter((step) => !known.some((other) => sameStep(step, other)));
  if (news.length === 0) return accept({ steps: known.length });
  const { stepsPerTaskMax } = state.limits;
  if (known.length + news.length > stepsPerTaskMax)
    return reject({ kind: "limit", what: "steps", limit: stepsPerTaskMax, got: known.length + news.length });
  const full = noRoomForMore(state, task.stage.job, bytesOfSteps(news), "due");
  if (full) return reject(full);
  return accept({ steps: known.length + news.length }, [
    { kind: "reported", task: task.no, token: command.token, steps: news, at: nowMs },
  ]);
}

const bytesOfSteps = (steps: readonly Step[]): number => steps.reduce((sum, step) => sum + bytesOfStep(step), 0);

const sameStep = (a: Step, b: Step): boolean => a.step === b.step && a.status === b.status && a.name === b.name;

export const wrongPhase = (task: Task, wanted: string): Rejection => ({
  kind: "task-phase",
  task: task.no,
  phase: task.phase,
  wanted,
});
