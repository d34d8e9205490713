/** What an executor says to shards: take work, keep it, bring it back. */
import { formatJob, formatTask, type ShardId } from "#base/ids.ts";
import type { Random } from "#base/random.ts";
import type { FailReason, Grant, HeldClaim, Plan, Result, Step } from "#kernel/model/model.ts";
import type { PlanInputs, Stats } from "#kernel/read/query.ts";
import { taskRef, type AskCommand, type AskQuery } from "./ask.ts";
import type { AskOptions } from "#shard/router/router.ts";

/** A claim of a task: the right to work on it and to say how it ended. */
export type ClaimRef = { readonly executor: string; readonly taskId: string; readonly token: number };
export type Granted = Grant & { readonly shard: ShardId; readonly taskId: string; readonly jobId: string };
export type Held = HeldClaim & { readonly taskId: string };

export type Reservation = {
  readonly executor: string;
  readonly offers: readonly string[];
  readonly count: number;
  readonly prefer?: readonly string[];
  /** "pure": of tasks without effects outside. */
  readonly start?: boolean | "pure";
  readonly tenant?: string;
  /** How long the shard may hold the request when it has nothing to give. */
  readonly waitMs?: number;
  readonly nonce?: string;
};

export type ExecutorClient = {
  reserve(shard: ShardId, wanted: Reservation, options?: AskOptions): Promise<readonly Granted[]>;
  start(claim: ClaimRef, options?: AskOptions): Promise<{ readonly leaseMs: number }>;
  /** One message for all claims in the shard; the answer lists everything that the executor holds there. */
  renew(
    shard: ShardId,
    executor: string,
    claims: readonly { readonly taskId: string; readonly token: number }[],
    options?: AskOptions,
  ): Promise<{
    readonly held: readonly Held[];
    readonly lost: readonly { readonly taskId: string; readonly token: number }[];
  }>;
  report(claim: ClaimRef, steps: readonly Step[], options?: AskOptions): Promise<void>;
  /** False: it was being cancelled, and this ended the claim. */
  commit(claim: ClaimRef, result: Result, options?: AskOptions): Promise<boolean>;
  /** The plan that counts: perhaps another planner's. */
  recordPlan(
    claim: ClaimRef,
    plan: Plan,
    options?: AskOptions,
  ): Promise<{ readonly recorded: boolean; readonly plan: Plan["kind"] }>;
  fail(claim: ClaimRef, reason: FailReason, message: string, options?: AskOptions): Promise<void>;
  release(claim: ClaimRef, options?: AskOptions): Promise<boolean>;
  /** All of a planner's inputs, page by page. */
  planInputs(claim: ClaimRef, options?: AskOptions): Promise<PlanInputs>;
  stats(shard: ShardId, options?: AskOptions): Promise<Stats>;
};

const planInputsPage = 1_000;
const messageLengthMax = 2_000;
/** The host puts its own evidence in the place of whatever an executor says (K3). */
const noEvidence = { digests: [], pinnedForMs: 0 };

/** `bring` is how an executor says what became of its work: many may say so at once. */
export function executorClient(
  command: AskCommand,
  query: AskQuery,
  random: Random,
  bring: AskCommand = command,
): ExecutorClient {
  let reservations = 0;
  return {
    async reserve(shard, wanted, options) {
      reservations += 1;
      const nonce = wanted.nonce ?? `${reservations.toString(36)}-${random.next32().toString(36)}`;
      const { executor, count, prefer = [], start = false, tenant, waitMs } = wanted;
      const offers = [...new Set(wanted.offers)].toSorted(); // one spelling for each set of labels
      const { grants } = await command(
        shard,
        { kind: "reserve", executor, offers, prefer, count, start, nonce, ...(tenant === undefined ? {} : { tenant }) },
        waitMs === undefined ? options : { ...options, waitMs },
      );
      return grants.map((grant) => ({
        ...grant,
        shard,
        taskId: formatTask(shard, grant.task),
        jobId: formatJob(shard, grant.job),
      }));
    },
    start: (claim, options) => command(taskRef(claim.taskId).shard, { kind: "start", ...numbered(claim) }, options),
    async renew(shard, executor, claims, options) {
      const numbers = claims.map(({ taskId, token }) => ({ task: taskRef(taskId).task, token }));
      const { held, lost } = await command(shard, { kind: "renew", executor, claims: numbers }, options);
      const named = <T extends { readonly task: number }>(each: T) => ({
        ...each,
        taskId: formatTask(shard, each.task),
      });
      return { held: held.map((each) => named(each)), lost: lost.map((each) => named(each)) };
    },
    async report({ executor, taskId, token }, steps, options) {
      const { shard, task } = taskRef(taskId);
      await command(shard, { kind: "report", executor, task, token, steps }, options);
    },
    async commit({ executor, taskId, token }, result, options) {
      const { shard, task } = taskRef(taskId);
      const commit = { kind: "commit", executor, task, token, result, evidence: noEvidence } as const;
      return (await bring(shard, commit, options)).committed;
    },
    recordPlan: (claim, plan, options) =>
      command(taskRef(claim.taskId).shard, { kind: "record-plan", ...numbered(claim), plan }, options),
    async fail(claim, reason, message, options) {
      const short = message.slice(0, messageLengthMax);
      await bring(taskRef(claim.taskId).shard, { kind: "fail", ...numbered(claim), reason, message: short }, options);
    },
    async release(claim, options) {
      const release = { kind: "release", ...numbered(claim) } as const;
      return (await command(taskRef(claim.taskId).shard, release, options)).released;
    },
    planInputs: (claim, options) => allPlanInputs(query, claim, options),
    stats: (shard, options) => query(shard, { kind: "stats" }, options),
  };
}

async function allPlanInputs(query: AskQuery, claim: ClaimRef, options?: AskOptions): Promise<PlanInputs> {
  const { shard } = taskRef(claim.taskId);
  const { task, token } = numbered(claim);
  const first = await query(shard, { kind: "plan-inputs", task, token, limit: planInputsPage }, options);
  const results = [...first.results];
  for (let from = first.next; from !== undefined;) {
    const page = await query(shard, { kind: "plan-inputs", task, token, from, limit: planInputsPage }, options);
    results.push(...page.results);
    from = page.next;
  }
  return { ...first, results, next: undefined };
}

/** For what is said seldom; what is said of every task is spelled out. */
const numbered = ({ executor, taskId, token }: ClaimRef) => ({ executor, task: taskRef(taskId).task, token });
