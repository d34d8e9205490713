/** Every answer must agree with the durable log: K1, K7, K8, K12. */
import type { Command } from "#kernel/model/command.ts";
import type { JobView } from "#kernel/read/query.ts";
import type { Rejection } from "#kernel/model/rejection.ts";
import type { Replies } from "#kernel/model/reply.ts";
import type { Checker, Court, ObservedResponse } from "./court.ts";
import { isOver, type ShardModel } from "#sim/model/model.ts";

export const sameKeySameJob: Checker = {
  invariant: "K1",
  promise: "the same request key is answered with the same job, and refused with another payload",
  said(_court, { model, request, response }) {
    if (request.kind !== "command" || request.command.kind !== "submit" || response.kind !== "reply") return undefined;
    const { tenant, door, requestKey, payloadHash } = request.command;
    if (requestKey === undefined) return undefined;
    const { job } = response.reply as Replies["submit"];
    // Another checker makes sure that the log binds a key to one job at a time.
    const bound = model.bindings.get([tenant, door, requestKey].join("\u0000"))?.get(job);
    const name = `${requestKey} of ${tenant} at ${door} in shard ${model.shard}`;
    if (bound === undefined) return `${name} was never bound to job ${job}`;
    return bound === payloadHash ? undefined : `${name} was accepted with another payload than job ${job}'s`;
  },
};

export const saidIsDurable: Checker = {
  invariant: "K7",
  promise: "no reply leaves before the events behind it are durable",
  said(_court, { model, request, response }) {
    if (response.kind !== "reply" && response.kind !== "answer" && response.kind !== "rejected") return undefined;
    const { stamp } = response;
    if (stamp.seq > model.seq) return `stamp ${stamp.seq} when the log of shard ${model.shard} ends at ${model.seq}`;
    if (response.kind !== "reply" || request.kind !== "command") return undefined;
    const missing = unfounded(model, request.command, response.reply as never);
    return (
      missing &&
      `shard ${model.shard} ${request.command.kind} was answered ${JSON.stringify(response.reply)}: ${missing}`
    );
  },
};

/** Why the log contradicts the reply; undefined if it does not. */
function unfounded(model: ShardModel, command: Command, reply: never): string | undefined {
  const check = facts[command.kind] as ((m: ShardModel, c: Command, r: never) => string | undefined) | undefined;
  return check?.(model, command, reply);
}

type Facts = {
  readonly [K in Command["kind"]]?: (
    model: ShardModel,
    command: Extract<Command, { kind: K }>,
    reply: Replies[K],
  ) => string | undefined;
};

const ended = (model: ShardModel, { task, token }: { task: number; token: number }): string | undefined =>
  model.claim(task, token)?.live === false ? undefined : `the log does not say that claim ${token} ended`;

const facts: Facts = {
  submit(model, command, reply) {
    const job = model.jobs.get(reply.job);
    if (!job) return `job ${reply.job} is not in the log`;
    if (job.tenant !== command.tenant || job.door !== command.door) return `job ${reply.job} is another's`;
    if (command.subscriber === undefined || (!reply.created && !reply.merged)) return undefined;
    const known = job.subscribers.has(command.subscriber) || job.left.has(command.subscriber);
    return known ? undefined : `subscriber ${command.subscriber} is not in the log`;
  },
  cancel(model, command, reply) {
    const phase = model.jobs.get(command.job)?.phase;
    if (phase === undefined) return "the job is not in the log";
    return isOver(reply.phase) && phase !== reply.phase ? `the log says ${phase}` : undefined;
  },
  signal(model, command, reply) {
    if (!reply.recorded) return undefined;
    const known = model.stage(command.job, command.stage)?.signals.has(command.signal.id);
    return known ? undefined : `signal ${command.signal.id} is not in the log`;
  },
  reserve(model, command, reply) {
    const bad = reply.grants.find(({ task, token }) => model.claim(task, token)?.executor !== command.executor);
    if (bad) return `claim ${bad.token} of task ${bad.task} is not in the log`;
    const wrong = reply.grants.find(
      ({ task, token, checkpoint }) => !model.claim(task, token)?.checkpoints.has(checkpoint?.payload),
    );
    return wrong && `claim ${wrong.token} came with the checkpoint ${wrong.checkpoint?.payload}`;
  },
  checkpoint(model, { task, token, checkpoint }, reply) {
    if (!reply.recorded) return "it was not recorded, and not refused";
    return model.claim(task, token)?.checkpoints.has(checkpoint.payload) ? undefined : "it is not in the log";
  },
  renew(model, { claims }, reply) {
    for (const { task, token, signals = [] } of reply.held) {
      const heard = claims.find((one) => one.token === token)?.heard ?? 0;
      const known = [...(model.tasks.get(task)?.stage.signals ?? [])];
      const wrong = signals.find(({ id, number }, i) => number !== heard + i + 1 || known[number - 1] !== id);
      if (wrong) return `task ${task} heard ${heard} signals, and was sent number ${wrong.number}, ${wrong.id}`;
    }
    return undefined;
  },
  start: (model, { task, token }) =>
    model.claim(task, token)?.started === true ? undefined : `claim ${token} was not started`,
  commit(model, { task, token, executor }, reply) {
    const found = model.tasks.get(task);
    if (found?.claims.get(token)?.executor !== executor) return `token ${token} is another executor's`;
    if (!reply.committed) return ended(model, { task, token });
    return found && [...found.results.values()].includes(token) ? undefined : "the commit is not in the log";
  },
  "record-plan"(model, { task, token }, reply) {
    if (!reply.recorded) return undefined;
    return ended(model, { task, token });
  },
  fail: ended,
  release: (model, claim, reply) => (reply.released ? ended(model, claim) : undefined),
  invalidate(model, { task }, reply) {
    const generation = model.tasks.get(task)?.generation ?? 0;
    return generation >= reply.generation ? undefined : `the log is at generation ${generation}`;
  },
  "set-tenant"(model, { tenant }, reply) {
    return !reply.changed || model.tenants.has(tenant) ? undefined : "the tenant is not in the log";
  },
};

export const oneOwnerSpeaks: Checker = {
  invariant: "K8",
  promise: "only the owner's word counts: no refusal and no read is older than what was known when it was asked for",
  said(court, said) {
    const { model, request, response, arrival } = said;
    if (response.kind !== "reply" && response.kind !== "answer" && response.kind !== "rejected") return undefined;
    const what = () => `shard ${model.shard}, ${JSON.stringify(request)} was answered ${JSON.stringify(response)}`;
    if (response.kind === "rejected") {
      const wrong = falselyAbsent(said, response.rejection);
      if (wrong) return `${what()}: ${wrong}`;
    }
    // A command that broke the shard is refused at once, whatever else is in progress: it says nothing of the shard.
    if (response.kind === "rejected" && response.rejection.kind === "broken") return undefined;
    if (response.stamp.seq >= arrival.seq) return undefined;
    // Reads and most refusals rely on the owner's lease, and the lease relies on an even store clock. Only within a
    // lease after a clock jump may one be old; "does not exist" is never answered on a lease alone.
    if (court.hasLeapt && !(response.kind === "rejected" && tellsAbsence.has(response.rejection.kind)))
      return undefined;
    return `${what()}: the log had reached ${arrival.seq} when it arrived`;
  },
};

const tellsAbsence = new Set([
  "job-unknown",
  "stage-unknown",
  "task-unknown",
  "token-stale",
  "generation-stale",
  "nothing-to-join",
]);

function falselyAbsent({ model, request, arrival }: ObservedResponse, rejection: Rejection): string | undefined {
  const asker = request.kind === "command" && "tenant" in request.command ? request.command.tenant : undefined;
  switch (rejection.kind) {
    case "job-unknown": {
      const job = model.jobs.get(rejection.job);
      if (asker !== undefined && job?.tenant !== asker) return undefined;
      return arrival.jobKnown && job && !job.forgotten ? "the job is in the log" : undefined;
    }
    case "token-stale": {
      if (request.kind !== "command" || !("token" in request.command)) return undefined;
      const claim = model.claim(rejection.task, rejection.offered);
      const live = claim?.live && claim.token === request.command.token && claim.executor === request.command.executor;
      return arrival.tokenLive && live ? "the token is live" : undefined;
    }
    case "nothing-to-join": {
      if (request.kind !== "command" || request.command.kind !== "submit") return "nobody asked to join";
      const job = model.joinable(request.command)?.no;
      return job !== undefined && job === arrival.joinable ? `job ${job} is under way` : undefined;
    }
    case "generation-stale": {
      const generation = model.tasks.get(rejection.task)?.generation;
      const same = generation === arrival.generation && generation === rejection.offered;
      return same ? "the generation is the current one" : undefined;
    }
    default:
      return undefined;
  }
}

export const readsAreTrue: Checker = {
  invariant: "K8",
  promise: "a read shows the job as the log has it, and nobody is told that a live claim is lost",
  said(_court, { model, request, response, arrival }) {
    if (response.kind === "answer" && request.kind === "query" && request.query.kind === "job") {
      const { job, phase } = response.answer as JobView;
      const known = model.jobs.get(job);
      const phases = known?.phases ?? [];
      const before = phases.findLast(({ seq }) => seq < response.stamp.seq);
      const during = phases.filter(({ seq }) => seq === response.stamp.seq);
      const fits = [...(before ? [before] : []), ...during].some((had) => had.phase === phase);
      return fits ? undefined : `job ${job} of shard ${model.shard} was shown ${phase}, the log says ${known?.phase}`;
    }
    if (response.kind !== "reply" || request.kind !== "command" || request.command.kind !== "renew") return undefined;
    const { executor } = request.command;
    const wrong = (response.reply as Replies["renew"]).lost.find(({ task, token }) => {
      const claim = model.claim(task, token);
      return claim?.live && claim.executor === executor && arrival.claimsLive.has(token);
    });
    return wrong && `${executor} was told in shard ${model.shard} that claim ${wrong.token} is lost, it is live`;
  },
};

export const brokenAlone: Checker = {
  invariant: "K12",
  promise: "a command that makes decide throw is refused alone",
  said(court: Court, { request, response, threw, by }) {
    // A reserve returns what was found before it threw: its claims are checked like any other grant.
    const isReserve = request.kind === "command" && request.command.kind === "reserve";
    if (threw && response.kind === "reply" && !isReserve) return `${JSON.stringify(request)} was accepted`;
    if (threw && response.kind !== "rejected") court.calm = false;
    if (response.kind === "interrupted" && court.calm) return `${by.name} lost its say though nothing was wrong`;
    return undefined;
  },
};
