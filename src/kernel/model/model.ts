/**
 * The words of the kernel: what a job, a stage, a task and a claim are, as others describe and see them.
 * The kernel knows nothing of any dialect: specs, plans' reasons, signals and results are opaque strings to it,
 * and bytes are named by digest only.
 */
import type { Digest } from "#base/digest.ts";

export type JobPhase = "WAITING" | "RUNNING" | "CANCELLING" | "SUCCEEDED" | "FAILED" | "CANCELLED";
export type StagePhase = "BLOCKED" | "READY" | "RUNNING" | "COMPLETED" | "FAILED" | "SKIPPED" | "CANCELLED";
/** WAITING is for planning only: the planner asked to be woken by a time or a signal. */
export type TaskPhase =
  | "READY"
  | "CLAIMED"
  | "RUNNING"
  | "RETRY_PENDING"
  | "WAITING"
  | "CANCELLING"
  | "SUCCEEDED"
  | "FAILED"
  | "CANCELLED";

/** Why an attempt ended without a result. What may be tried again depends on it. */
export type FailReason =
  | "executor-lost"
  | "preempted"
  | "timed-out"
  | "out-of-memory"
  | "input-lost"
  | "user-failure"
  | "cancelled";

/** What all tasks of one stage share. */
export type TaskTemplate = {
  /** Tells the executor which part of it runs the task. */
  readonly kind: string;
  /** Labels (`name=value`) that an executor must all offer. */
  readonly requires: readonly string[];
  /** How long a claim lasts without renewal. */
  readonly leaseMs: number;
  readonly attemptsMax: number;
  /** "infrastructure": a failure of the user's own work is final. */
  readonly retryOn: "infrastructure" | "any";
  readonly backoffMs: number;
  readonly backoffMsMax: number;
  /** The longest wait for an executor. */
  readonly queueMs: number;
  /** The longest run of one attempt. */
  readonly attemptMs: number;
  /** "outside" tasks change the world: never two attempts at once, and no grace after a lost lease. */
  readonly effects: "pure" | "outside";
  readonly speculate: boolean;
  /** How long an executor that hears nothing may go on after its lease, hoping for the owner to come back. */
  readonly graceMs: number;
};

export type TaskPlan = {
  /** Names the task within its stage, in every generation. */
  readonly key: string;
  readonly spec: string;
  /** A hint such as a digest or a host: an executor that prefers it gets this task sooner than its neighbours. */
  readonly affinity?: string;
};

export type TaskSet = { readonly template: TaskTemplate; readonly tasks: readonly TaskPlan[] };

/** How the tasks of a stage are to be found out when its needs have ended. */
export type PlanSpec = {
  readonly kind: string;
  /** Names the door and plan version that a planner must support, as labels. */
  readonly requires: readonly string[];
  readonly leaseMs: number;
  readonly attemptsMax: number;
  /** From READY until a plan is recorded; time spent waiting for a signal counts too. */
  readonly deadlineMs: number;
};

export type LockSpec = {
  readonly name: string;
  /** How many may hold it at once. */
  readonly limit: number;
  /** How many may wait; one more displaces (cancels) the oldest that waits. */
  readonly queueMax: number;
  /** Cancels the holders, so that the newcomer gets its turn sooner. */
  readonly cancelInProgress: boolean;
};

export type StageSpec = {
  readonly name: string;
  /** Indices of earlier or later stages of the same job; cycles are refused. */
  readonly needs: readonly number[];
  /** "success": skipped unless every need COMPLETED. "end": made ready however its needs ended. */
  readonly after: "success" | "end";
  /** Exactly one of `tasks` (known at submission) and `plan` (found out later). */
  readonly tasks?: TaskSet;
  readonly plan?: PlanSpec;
  /** The first task to fail for good cancels the others. */
  readonly failFast: boolean;
  /** The job may succeed although this stage failed. */
  readonly mayFail: boolean;
  /** How many of its tasks may be queued or running at once; 0 for no limit. */
  readonly parallelMax: number;
  readonly lock?: LockSpec;
};

export type Result = {
  /** What the door wants to remember of the outcome; opaque here. */
  readonly payload: string;
  readonly digests: readonly Digest[];
  /**
   * What is to be made known outside once the result is committed: the shard's owner sees to it, and the job does not
   * succeed before. Opaque here. In a result that is taken over from an earlier job it has no effect.
   */
  readonly publish?: string;
};

/** The receiving node's word (never the executor's) that blobs are pinned in the store until a time (K3). */
export type Evidence = { readonly digests: readonly Digest[]; readonly pinnedForMs: number };

/** A result of an earlier job that a re-run may take over where stage, key and spec are the same. */
export type Reuse = {
  readonly stage: string;
  readonly key: string;
  readonly spec: string;
  readonly result: Result;
};

export type Plan =
  | { readonly kind: "tasks"; readonly set: TaskSet }
  | { readonly kind: "skip"; readonly reason: string }
  | { readonly kind: "fail"; readonly reason: string }
  /** Be asked again after `forMs` at the latest, or when one of the signals comes. */
  | { readonly kind: "wait"; readonly forMs: number; readonly signals: readonly string[] };

export type Signal = { readonly id: string; readonly name: string; readonly payload: string };

export type StepStatus = "started" | "succeeded" | "failed" | "skipped" | "progress";
export type Step = { readonly step: number; readonly name: string; readonly status: StepStatus };

/** What an executor is handed: all it needs to begin. */
export type Grant = {
  readonly task: number;
  readonly token: number;
  readonly job: number;
  readonly stage: number;
  readonly stageName: string;
  readonly tenant: string;
  readonly door: string;
  readonly kind: string;
  readonly key: string;
  readonly spec: string;
  /** True when the work is to say what the stage's tasks are: answer with record-plan, not commit. */
  readonly planning: boolean;
  readonly generation: number;
  /** Counts from 1. */
  readonly attempt: number;
  readonly leaseMs: number;
  readonly graceMs: number;
  readonly attemptMs: number;
  readonly effects: "pure" | "outside";
  /** How many attempts of the task ran out of memory. Undefined from an older shard, which does not count. */
  readonly outOfMemory?: number | undefined;
};

/** One claim as `renew` tells it back. */
export type HeldClaim = {
  readonly task: number;
  readonly token: number;
  readonly leaseMs: number;
  readonly started: boolean;
  /** Stop now, then say `fail` with reason "cancelled". */
  readonly cancelling: boolean;
};
