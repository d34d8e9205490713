/** Grants tasks under a lease, and renews and releases the claims. */
import type { Digest } from "#base/digest.ts";
import { hash32 } from "#base/random.ts";
import type { CommandOf, Tokened } from "#kernel/model/command.ts";
import { accept, type Decision, reject } from "./decision.ts";
import type { Claim, Executor, LastEnd, Stage, Task } from "#kernel/model/entities.ts";
import type { EventOf, Next } from "#kernel/model/event.ts";
import type { Grant, HeldClaim, NumberedSignal, NeedManifest, Step } from "#kernel/model/model.ts";
import type { Rejection } from "#kernel/model/rejection.ts";
import { attemptMsOf, limitAtMsOf, slotsOf } from "#kernel/apply/moves.ts";
import { noMemoryForMore } from "#kernel/memory/free-memory.ts";
import type { State } from "#kernel/model/state.ts";
import { wrongChoice, wrongLabels, wrongList, wrongSteps, wrongText, wrongTexts, wrongWhole } from "./validate.ts";
import { visibleTask } from "#kernel/read/visible.ts";
import { bytesOfStep } from "#kernel/memory/weigh.ts";

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
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
  // Always accept a few executors: without executors no work ends, and no memory becomes free.
  if (!executor && state.executors.size >= limits.executorsAlways && !state.memory.fitsAll(0))
    return { kind: "shard-full", what: "memory", retryAfterMs: limits.retryAfterMs };
  if (executor?.drained && executor.drained.untilMs > nowMs)
    return { kind: "executor-drained", executor: executor.id, reason: executor.drained.reason };
  return undefined;
}

/**
 * The claims granted to an earlier copy of this request, as far as they are still live; undefined for a new request.
 */
export function grantedBefore(state: State, command: Reserve): readonly Grant[] | undefined {
  const executor = state.executors.get(command.executor);
  if (!executor || command.nonce === "" || executor.nonce !== command.nonce) return undefined;
  return executor.granted.flatMap((token) => {
    const claim = executor.claims.get(token);
    return claim && !claim.void ? [grantOf(claim)] : [];
  });
}

/**
 * One grant: the next task in fair order, under a new token. The caller repeats it until there is no task left or it
 * has enough.
 */
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
  // The next tick handles a quota slice that has just expired; until then grant nothing on it.
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
  const grant: Mutable<Grant> = {
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
    attemptMs: attemptMsOf(task),
    effects: template.effects,
    outOfMemory: task.outOfMemory,
  };
  if (task.array) grant.index = (task.array.plan.first ?? 0) + task.index;
  if (stage.shape.needs.length > 0) grant.manifests = manifestsOf(stage);
  if (job.trace !== undefined) grant.trace = job.trace;
  if (template.stopMs !== undefined) grant.stopMs = template.stopMs;
  if (task.failures) grant.failures = task.failures;
  if (task.checkpoint) {
    const { payload, digests, token } = task.checkpoint;
    grant.checkpoint = { payload, digests, token };
  }
  return grant;
}

/** Undefined if no need has one: most stages have no needs, and most needs have a few results. */
function manifestsOf({ job, shape }: Stage): readonly NeedManifest[] | undefined {
  let manifests: NeedManifest[] | undefined;
  for (const index of shape.needs) {
    const need = job.stages[index];
    if (need?.manifest?.digest === undefined) continue;
    const { generation, manifest } = need;
    (manifests ??= []).push({ stage: need.shape.name, generation, digest: manifest.digest as Digest });
  }
  return manifests;
}

/**
 * The live claim that the token belongs to, or the rejection. A token is valid only for the executor it was granted to.
 */
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

/** A task becomes CANCELLED only when none of its attempts can still be running. */
export const whenCancelling = (task: Task): Next => ({ do: task.second ? "nothing" : "cancel" });

/** The attempt ended while its task was being cancelled. A repeated end command gets the first answer again. */
export const wasCancelled = (task: Task, command: Tokened): boolean => endedBy(task, command)?.outcome === "cancelled";

/** How the attempt with this token ended, if it was the last to end. A token is valid only for its own executor. */
export function endedBy(task: Task | undefined, { executor, token }: Tokened): LastEnd | undefined {
  const last = task?.last;
  if (!last || last.token !== token) return undefined;
  if (last.executor === executor) return last;
  // Of an array's task that has ended, only a hash of the executor is kept.
  const isOwn = last.executor === "" && token !== 0 && task.array?.markAt(task.index) === hash32(executor);
  return isOwn ? last : undefined;
}

export function decideStart(state: State, command: CommandOf<"start">, nowMs: number): Decision {
  const found = findClaim(state, command);
  if (!found.claim) return reject(found.why);
  const { claim } = found;
  const { task } = claim;
  if (task.phase === "CANCELLING") return reject(wrongPhase(task, "to start"));
  // A repeated start does not renew the lease: promise only what is left of it.
  if (claim.startedAtMs !== 0) return accept({ leaseMs: Math.max(0, claim.expiresAtMs - nowMs) });
  return accept({ leaseMs: claim.leaseMs }, [{ kind: "started", task: task.no, token: claim.token, at: nowMs }]);
}

/** A sync rather than a request: the answer lists every claim that the executor really holds, whatever it believed. */
export function decideRenew(state: State, command: CommandOf<"renew">, nowMs: number): Decision {
  const wrong =
    wrongText("executor", command.executor, state.limits.nameLengthMax, 1) ??
    wrongList("claims", command.claims, state.limits.renewClaimsMax);
  if (wrong) return reject(wrong);
  const executor = state.executors.get(command.executor);
  const held: HeldClaim[] = [];
  const heard: { token: number; number: number }[] = [];
  for (const claim of executor?.claims.values() ?? [])
    if (!claim.void) {
      const one = {
        task: claim.task.no,
        token: claim.token,
        leaseMs: nowMs < limitAtMsOf(claim) ? claim.leaseMs : Math.max(0, claim.expiresAtMs - nowMs),
        started: claim.startedAtMs !== 0,
        cancelling: claim.task.phase === "CANCELLING",
      };
      const number = claim.task.stage.gate ? heardOf(claim, command) : 0;
      if (number > 0) heard.push({ token: claim.token, number });
      const signals = claim.task.stage.gate && unheard(claim, number);
      held.push(signals ? { ...one, signals } : one);
    }
  const lost = command.claims.filter(({ task, token }) => {
    const claim = executor?.claims.get(token);
    return !claim || claim.void || claim.task.no !== task;
  });
  if (!executor) return accept({ held, lost });
  const silent = lost.filter(({ token }) => executor.claims.has(token)).map(({ token }) => token);
  return accept(
    { held, lost },
    [],
    [{ kind: "renewed", executor: executor.id, silent, ...(heard.length > 0 && { heard }), at: nowMs }],
  );
}

/** So many signals at most are sent with one renewal of a claim: their payloads may be long. */
const signalsAtOnce = 16;

/** Signals to the stage of a running task that its executor has not acknowledged; undefined for none. */
function unheard({ task }: Claim, from: number): readonly NumberedSignal[] | undefined {
  const { gate, planning } = task.stage;
  if (!gate || task === planning) return undefined;
  if (gate.signals.length <= from) return undefined;
  return gate.signals.slice(from, from + signalsAtOnce).map((signal, i) => ({ ...signal, number: from + i + 1 }));
}

function heardOf({ token }: Claim, { claims }: CommandOf<"renew">): number {
  const heard = claims.find((one) => one.token === token)?.heard ?? 0;
  return Number.isSafeInteger(heard) && heard > 0 ? heard : 0;
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
  const numbers = new Set(known.map(({ step }) => step)).union(new Set(news.map(({ step }) => step)));
  if (numbers.size > stepsPerTaskMax)
    return reject({ kind: "limit", what: "steps", limit: stepsPerTaskMax, got: numbers.size });
  const full = noMemoryForMore(state, task.stage.job, bytesOfSteps(news), "due");
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
