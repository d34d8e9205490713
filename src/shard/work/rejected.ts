/**
 * What a caller of the work client gets when a command is rejected: an error that carries the rejection, with a message
 * for people. (Inside, a rejection is a value; here nearly every caller would turn it into an error at once.)
 */
import { formatJob, formatTask, type ShardId } from "#base/ids.ts";
import { formatDuration } from "#base/units.ts";
import type { Rejection, RejectionKind } from "#kernel/model/rejection.ts";

export class RejectedError extends Error {
  readonly rejection: Rejection;
  readonly shard: ShardId;

  constructor(doing: string, shard: ShardId, rejection: Rejection) {
    super(`${doing}: ${rejection.kind} (${sayRejection(shard, rejection)})`);
    this.name = "RejectedError";
    this.rejection = rejection;
    this.shard = shard;
  }
}

export const isRejected = (error: unknown, kind?: RejectionKind): error is RejectedError =>
  error instanceof RejectedError && (kind === undefined || error.rejection.kind === kind);

export const sayRejection = (shard: ShardId, rejection: Rejection): string => {
  const say = rejections[rejection.kind].say as (rejection: Rejection, shard: ShardId) => string;
  return say(rejection, shard);
};

type Entry<K extends RejectionKind> = {
  /** For the reference documentation. */
  readonly about: string;
  readonly remedy: string;
  readonly say: (rejection: Extract<Rejection, { kind: K }>, shard: ShardId) => string;
};

export const rejections: { readonly [K in RejectionKind]: Entry<K> } = {
  invalid: {
    about: "The request itself is wrong; the path points into it.",
    remedy: "Correct the request.",
    say: ({ path, why }) => `${path === "" ? "the request" : path}: ${why}`,
  },
  limit: {
    about: "The request exceeds one of the fixed limits.",
    remedy: "Split the work, or make the thing smaller.",
    say: ({ what, limit, got }) => `${what} is limited to ${limit}, and this has ${got}`,
  },
  cycle: {
    about: "Stages need each other in a circle.",
    remedy: "Remove one of the needs.",
    say: ({ stages }) => `the stages ${stages.join(" -> ")} wait for each other`,
  },
  "job-unknown": {
    about: "There is no such job, or it ended and its record was trimmed.",
    remedy: "Look for it with `millrace job list`.",
    say: ({ job }, shard) => `there is no job ${formatJob(shard, job)}`,
  },
  "stage-unknown": {
    about: "The job has no such stage.",
    remedy: "See its stages with `millrace job show`.",
    say: ({ job, stage }, shard) => `job ${formatJob(shard, job)} has no stage ${stage}`,
  },
  "task-unknown": {
    about: "There is no such task, or its job has ended and left memory.",
    remedy: "See the job's tasks with `millrace job show`.",
    say: ({ task }, shard) => `there is no task ${formatTask(shard, task)}`,
  },
  "job-ended": {
    about: "The job has ended: nothing about it can change any more.",
    remedy: "Submit it again if it is to run again.",
    say: ({ job, phase }, shard) => `job ${formatJob(shard, job)} has already ended: ${phase}`,
  },
  "token-stale": {
    about: "The executor's claim has ended: it was lost, given to another, or cancelled.",
    remedy: "Nothing to do: the executor's work no longer counts; the task is claimed by another executor, or over.",
    say: ({ task, offered, current }, shard) =>
      `the claim ${offered} on task ${formatTask(shard, task)} no longer counts; the newest is ${current}`,
  },
  "task-phase": {
    about: "The task is not in a phase in which this can be done.",
    remedy: "See the task with `millrace job show`.",
    say: ({ task, phase, wanted }, shard) => `task ${formatTask(shard, task)} is ${phase}, not ${wanted}`,
  },
  "key-reused": {
    about: "The request key was used before, for a different request.",
    remedy: "Use a new key for a new request; repeat the old request unchanged to get its job.",
    say: ({ key, job }, shard) =>
      `the key ${JSON.stringify(key)} already belongs to job ${formatJob(shard, job)}, which was a different request`,
  },
  "nothing-to-join": {
    about: "The request was only to join a job, and no live job has this merge key: it has ended, or never began.",
    remedy: "Ask for the job's result, or submit the work.",
    say: ({ mergeKey }) => `no job with the merge key ${JSON.stringify(mergeKey)} is live`,
  },
  "evidence-missing": {
    about: "A result names a blob that is not in the store.",
    remedy: "Upload the blob before committing the result.",
    say: ({ digest }) => `the blob ${digest} is not in the store`,
  },
  "evidence-expired": {
    about: "The pin on a result's blobs expired before the result was recorded.",
    remedy: "Commit again; executors do so by themselves.",
    say: ({ pinnedForMs }) => `the result's blobs were pinned for ${formatDuration(Math.max(0, pinnedForMs))} only`,
  },
  "generation-stale": {
    about: "The task has been opened again since: another generation counts now.",
    remedy: "Nothing to do.",
    say: ({ task, offered, current }, shard) =>
      `task ${formatTask(shard, task)} is in generation ${current}, and this was about ${offered}`,
  },
  "executor-drained": {
    about: "The executor gets no work: an operator drained it, or it failed too often.",
    remedy: "Find out why it fails; after a while it gets work again.",
    say: ({ executor, reason }) => `executor ${executor} is drained: ${reason}`,
  },
  "queue-full": {
    about: "The tenant has as much work waiting as it may have.",
    remedy: "Submit again after the time.",
    say: ({ tenant, queuedMax, retryAfterMs }) =>
      `tenant ${tenant} may have ${queuedMax} tasks waiting; try again in ${formatDuration(retryAfterMs)}`,
  },
  "shard-full": {
    about: "The shard cannot accept more work at the moment.",
    remedy: "Submit again after the time.",
    say: ({ what, retryAfterMs }) => `${what} is full; try again in ${formatDuration(retryAfterMs)}`,
  },
  broken: {
    about: "The request hit a bug: it was refused alone, and nothing changed.",
    remedy: "Please report it, with the message.",
    say: ({ why }) => `this request hit a bug: ${why}`,
  },
};
