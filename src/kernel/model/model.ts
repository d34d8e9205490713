/**
 * The kernel's vocabulary: what a job, a stage, a task and a claim are, as callers describe and see them. The kernel
 * knows no dialect: specs, plans' reasons, signals and results are opaque strings to it, and bytes are named by digest
 * only.
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
  /** Selects the part of the executor that runs the task. */
  readonly kind: string;
  /** Labels (`name=value`). An executor must offer all of them. */
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
  /**
   * How long an executor without contact to the shard may go on after its lease ended, in case the owner comes back.
   */
  readonly graceMs: number;
  /** How long an attempt that was asked to stop may take to do so; left out, ten seconds. */
  readonly stopMs?: number;
  /**
   * How many attempts that were lost to infrastructure (executor lost, preempted, input lost) do not count towards
   * attemptsMax; left out, none.
   */
  readonly lossesMax?: number;
  /**
   * How many attempts that ended for a reason are followed by another; one that ended for a reason not named here is
   * the last. attemptsMax bounds them all. Left out, retryOn decides.
   */
  readonly retries?: FailureCounts;
  /** When a second attempt is worth it, for tasks with `speculate`; left out, as the shard's limits say. */
  readonly speculation?: Speculation;
  /**
   * Each task takes this lock before it is queued, and keeps it until it has ended. A plan with a set for each task can
   * give each its own. Not for arrays.
   */
  readonly lock?: LockSpec;
};

/** A straggler has run for longer than a multiple of the time in which a share of its siblings were done. */
export type Speculation = {
  /** The share, from 1 to 100. At least as many siblings must be done. */
  readonly percentile: number;
  /** The multiple, in percent. */
  readonly factorPercent: number;
  /** How many tasks of the stage may have a second attempt at once. */
  readonly slots: number;
};

export type TaskPlan = {
  /** Names the task within its stage, in every generation. */
  readonly key: string;
  readonly spec: string;
  /** A hint such as a digest or a host: executors that prefer it get this task ahead of its neighbours. */
  readonly affinity?: string;
};

/** Tasks that are listed one by one. */
export type ListedTasks = {
  readonly template: TaskTemplate;
  readonly tasks: readonly TaskPlan[];
  readonly array?: undefined;
};

/** Many tasks that share one spec and differ by their index, which is also their key. */
export type ArrayTasks = { readonly template: TaskTemplate; readonly array: ArrayPlan; readonly tasks?: undefined };

export type ArrayPlan = {
  readonly count: number;
  /** The index of the first task, for a set that is a range of something larger; 0 if left out. */
  readonly first?: number;
  /** For all of them: an executor gets it together with the index. */
  readonly spec: string;
};

/** See task-set.ts for what both forms have in common. */
export type TaskSet = ListedTasks | ArrayTasks;

/** How the tasks of a stage are found out once its needs have ended. */
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
  /** How many may hold the lock at once. */
  readonly limit: number;
  /** How many may wait for it; one more displaces (cancels) the oldest that waits. */
  readonly queueMax: number;
  /** Cancels the holders when a new request arrives. */
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
  /** Lists its results in a manifest, as is always done for an array. */
  readonly manifest?: boolean;
};

export type Result = {
  /** What the door stores about the outcome; opaque to the kernel. */
  readonly payload: string;
  readonly digests: readonly Digest[];
  /**
   * What to publish once the result is committed. The shard's owner publishes it, and the job does not succeed before
   * that. Opaque to the kernel. Ignored in a result that is reused from an earlier job.
   */
  readonly publish?: string;
};

export type FailureCounts = Readonly<Partial<Record<FailReason, number>>>;

/** What an attempt has got so far, from which the next attempt of the task may go on. Opaque to the kernel. */
export type Checkpoint = { readonly payload: string; readonly digests: readonly Digest[] };

/** Why an attempt ended without a result of its task, and what it left nevertheless: a log, outputs, partial state. */
export type Failure = { readonly reason: FailReason; readonly message: string; readonly result?: Result | undefined };

/** The receiving node's statement (never the executor's) that blobs are pinned in the store until a given time (K3). */
export type Evidence = { readonly digests: readonly Digest[]; readonly pinnedForMs: number };

/** A result of an earlier job that a re-run may reuse where stage, key and spec are the same. */
export type Reuse = {
  readonly stage: string;
  readonly key: string;
  readonly spec: string;
  readonly result: Result;
};

/** What a plan decides about its stage. What it leaves out stays as the stage's spec says. */
export type PlanDecides = {
  /** Taken after planning, and only if the stage's spec has no lock: a stage that is skipped disturbs no holder. */
  readonly lock?: LockSpec;
  readonly failFast?: boolean;
  readonly mayFail?: boolean;
  readonly parallelMax?: number;
};
/** A fact about a job, for people and doors to find it by: they are indexed, and opaque to the kernel. */
export type Tag = { readonly name: string; readonly value: string };

/** The number that a job took of a series. Each number of a series is given to one job, in order, from 1 on. */
export type SeriesNumber = { readonly name: string; readonly number: number };

/** Where the end of a job is to be told: a stage of a job of the same tenant, in this shard or another. */
export type Notice = {
  readonly shard: number;
  readonly job: number;
  readonly stage: number;
  /** The stage gets the signal `ended:<name>`. The prefix keeps it from counting as an approval. */
  readonly name: string;
};

/** How telling it came out. "refused": the job or stage that it was for is unknown or has ended. */
export type NoticeOutcome = "delivered" | "refused" | "given-up";

export type Plan =
  | { readonly kind: "tasks"; readonly set: TaskSet; readonly sets?: undefined; readonly decides?: undefined }
  /** Several sets, each with a template of its own. Keys are unique over all of them. */
  | {
      readonly kind: "tasks";
      readonly set?: undefined;
      readonly sets: readonly TaskSet[];
      readonly decides?: PlanDecides;
    }
  | { readonly kind: "skip"; readonly reason: string }
  | { readonly kind: "fail"; readonly reason: string }
  /** Call the planner again after `forMs` at the latest, or when one of the signals arrives. */
  | { readonly kind: "wait"; readonly forMs: number; readonly signals: readonly string[] };

export type Signal = {
  readonly id: string;
  readonly name: string;
  readonly payload: string;
  /** Who sent it: the authenticated caller, where there was one. */
  readonly by?: string;
  /** When it was recorded; set by the shard. */
  readonly atMs?: number;
};

/** Signals of a stage are numbered from 1, in the order in which they were recorded. */
export type NumberedSignal = Signal & { readonly number: number };

export type StepStatus = "started" | "succeeded" | "failed" | "skipped" | "progress";
export type Step = { readonly step: number; readonly name: string; readonly status: StepStatus };

/** The blob that lists the results of a stage: see shard/manifest/format.ts. */
export type NeedManifest = { readonly stage: string; readonly generation: number; readonly digest: Digest };

/** What an executor receives with a claim: everything it needs to start. */
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
  /** True for a planning task: answer with record-plan, not with commit. */
  readonly planning: boolean;
  readonly generation: number;
  /** Counts from 1. */
  readonly attempt: number;
  readonly leaseMs: number;
  readonly graceMs: number;
  readonly attemptMs: number;
  readonly effects: "pure" | "outside";
  /** How long the attempt has to stop when it is asked to; undefined: as long as the executor gives it. */
  readonly stopMs?: number | undefined;
  /** The last one that an earlier attempt recorded, and under which token. */
  readonly checkpoint?: (Checkpoint & { readonly token: number }) | undefined;
  /** How many attempts of the task failed, by reason; undefined for none. */
  readonly failures?: FailureCounts | undefined;
  /** How many attempts of the task ran out of memory. Undefined from an older shard, which does not count them. */
  readonly outOfMemory?: number | undefined;
  /** The task's index, if it is one of an array. */
  readonly index?: number | undefined;
  /** The manifests of the stages that its stage needs, for those that have one. */
  readonly manifests?: readonly NeedManifest[] | undefined;
  /** The trace that the job was submitted with; undefined: with none, or to an older shard. */
  readonly trace?: string | undefined;
};

/** One claim as the answer to `renew` lists it. */
export type HeldClaim = {
  readonly task: number;
  readonly token: number;
  readonly leaseMs: number;
  readonly started: boolean;
  /** Stop now, then send `fail` with reason "cancelled". */
  readonly cancelling: boolean;
  /** Signals to the task's stage that the renewal did not acknowledge, oldest first, a few at a time. */
  readonly signals?: readonly NumberedSignal[] | undefined;
};
