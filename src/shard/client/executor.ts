/** An executor's requests to shards: reserve tasks, renew claims, report results. */
import { formatJob, formatTask, type ShardId } from "#base/ids.ts";
import type { Random } from "#base/random.ts";
import type { Checkpoint, FailReason, Grant, HeldClaim, Plan, Result, Step } from "#kernel/model/model.ts";
import type { PlanInputs, Stats } from "#kernel/read/query.ts";
import { taskRef, type AskCommand, type AskQuery } from "./ask.ts";
import type { AskOptions } from "#shard/router/router.ts";

/** A claim on a task: the right to run it and to say how it ended. */
export type ClaimRef = { readonly executor: string; readonly taskId: string; readonly token: number };
export type Granted = Grant & { readonly shard: ShardId; readonly taskId: string; readonly jobId: string };
export type Held = HeldClaim & { readonly taskId: string };

export type Reservation = {
  readonly executor: string;
  readonly offers: readonly string[];
  readonly count: number;
  readonly prefer?: readonly string[];
  /** "pure": only tasks without outside effects. */
  readonly start?: boolean | "pure";
  readonly tenant?: string;
  /** How long the shard may hold the request while it has no work for the executor. */
  readonly waitMs?: number;
  readonly nonce?: string;
};

export type ExecutorClient = {
  reserve(shard: ShardId, wanted: Reservation, options?: AskOptions): Promise<readonly Granted[]>;
  start(claim: ClaimRef, options?: AskOptions): Promise<{ readonly leaseMs: number }>;
  /** One message for all claims in the shard; the answer lists all claims that the executor holds there. */
  renew(
    shard: ShardId,
    executor: string,
    claims: readonly { readonly taskId: string; readonly token: number; readonly heard?: number }[],
    options?: AskOptions,
  ): Promise<{
    readonly held: readonly Held[];
    readonly lost: readonly { readonly taskId: string; readonly token: number }[];
  }>;
  report(claim: ClaimRef, steps: readonly Step[], options?: AskOptions): Promise<void>;
  /** False: the task was being cancelled, and this only ended the claim. */
  commit(claim: ClaimRef, result: Result, options?: AskOptions): Promise<boolean>;
  /** The plan that counts, perhaps recorded by another planner. */
  recordPlan(
    claim: ClaimRef,
    plan: Plan,
    options?: AskOptions,
  ): Promise<{ readonly recorded: boolean; readonly plan: Plan["kind"] }>;
  /** With `result`, the attempt leaves something nevertheless; its blobs must be in the store. */
  fail(
    claim: ClaimRef,
    reason: FailReason,
    message: string,
    options?: AskOptions & { readonly result?: Result | undefined },
  ): Promise<void>;
  /** Resolves when it is durable. Refused with `shard-full` and a time to try again if it comes too soon. */
  checkpoint(claim: ClaimRef, checkpoint: Checkpoint, options?: AskOptions): Promise<void>;
  release(claim: ClaimRef, options?: AskOptions & { readonly checkpoint?: Checkpoint | undefined }): Promise<boolean>;
  /** All of a planner's inputs, page by page. */
  planInputs(claim: ClaimRef, options?: AskOptions): Promise<PlanInputs>;
  stats(shard: ShardId, options?: AskOptions): Promise<Stats>;
};

const planInputsPage = 1_000;
const messageLengthMax = 2_000;
/** The host replaces whatever evidence an executor sends with its own (K3). */
const noEvidence = { digests: [], pinnedForMs: 0 };

/** `bring` sends the end of an attempt; it may batch several into one request. */
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
      const offers = [...new Set(wanted.offers)].toSorted(); // equal sets of labels get one spelling
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
      const numbers = claims.map(({ taskId, token, heard }) => {
        const { task } = taskRef(taskId);
        return heard === undefined ? { task, token } : { task, token, heard };
      });
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
    async fail(claim, reason, message, { result, ...options } = {}) {
      const fail = { kind: "fail", ...numbered(claim), reason, message: message.slice(0, messageLengthMax) } as const;
      await bring(taskRef(claim.taskId).shard, result ? { ...fail, result } : fail, options);
    },
    async checkpoint(claim, checkpoint, options) {
      const { shard } = taskRef(claim.taskId);
      const evidence = noEvidence;
      await command(shard, { kind: "checkpoint", ...numbered(claim), checkpoint, evidence }, options);
    },
    async release(claim, { checkpoint, ...options } = {}) {
      const release = { kind: "release", ...numbered(claim), ...(checkpoint && { checkpoint }) } as const;
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

/** For rare commands; the frequent ones are written out field by field. */
const numbered = ({ executor, taskId, token }: ClaimRef) => ({ executor, task: taskRef(taskId).task, token });
