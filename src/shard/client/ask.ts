/** Sends one request to a shard and returns the matching type of answer; a rejection becomes a RejectedError. */
import { Fault } from "#base/fault.ts";
import { parseJob, parseTask, type JobRef, type ShardId, type TaskRef } from "#base/ids.ts";
import type { CommandKind, CommandOf } from "#kernel/model/command.ts";
import type { Answers, Query } from "#kernel/read/query.ts";
import type { Replies, Reply } from "#kernel/model/reply.ts";
import { RejectedError } from "#shard/work/rejected.ts";
import type { AskOptions, Router, Settled } from "#shard/router/router.ts";

export type AskCommand = <K extends CommandKind>(
  shard: ShardId,
  command: CommandOf<K>,
  options?: AskOptions & { readonly waitMs?: number },
) => Promise<Replies[K]>;

export type AskQuery = <K extends Query["kind"]>(
  shard: ShardId,
  query: Extract<Query, { kind: K }>,
  options?: AskOptions,
) => Promise<Answers[K]>;

export function askers(router: Router): { readonly command: AskCommand; readonly query: AskQuery } {
  return {
    async command(shard, command, options) {
      const waitMs = options?.waitMs;
      const request =
        waitMs === undefined
          ? ({ kind: "command", shard, command } as const)
          : ({ kind: "command", shard, command, waitMs } as const);
      return replyOf(command.kind, shard, await router.request(request, options)) as Replies[typeof command.kind];
    },
    async query(shard, query, options) {
      const settled = await router.request({ kind: "query", shard, query }, options);
      if (settled.kind === "rejected") throw new RejectedError(`ask for ${query.kind}`, shard, settled.rejection);
      if (settled.kind !== "answer") throw refuse(`ask for ${query.kind}`, shard, settled);
      return settled.answer as Answers[typeof query.kind];
    },
  };
}

/** The reply to a command; throws on a rejection. */
export function replyOf(doing: string, shard: ShardId, settled: Settled | undefined): Reply {
  if (settled?.kind === "rejected") throw new RejectedError(doing, shard, settled.rejection);
  if (settled?.kind !== "reply") throw refuse(doing, shard, settled);
  return settled.reply;
}

const refuse = (doing: string, shard: ShardId, got: { readonly kind: string } | undefined): Fault =>
  new Fault("internal", doing, { shard, got: got?.kind ?? "nothing", why: "the answer does not match the request" });

export function jobRef(jobId: string): JobRef {
  const ref = parseJob(jobId);
  if (!ref) throw new Fault("invalid", "read job id", { id: jobId.slice(0, 50), why: "an id looks like j0-1" });
  return ref;
}

export function taskRef(taskId: string): TaskRef {
  const ref = parseTask(taskId);
  if (!ref) throw new Fault("invalid", "read task id", { id: taskId.slice(0, 50), why: "an id looks like t0-1" });
  return ref;
}
