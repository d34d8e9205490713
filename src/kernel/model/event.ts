/**
 * Every event that can happen in a shard. The log keeps events for ever: a field never changes its meaning, new fields
 * are optional, a new kind needs a new feature level (`featureOf`), and `apply` reads every event ever written (golden
 * logs: kernel/golden/). Instants (`at…`) are kernel time.
 */
import type { Digest } from "#base/digest.ts";
import type { Checkpoint, FailReason, JobPhase, LockSpec, Notice, NoticeOutcome, PlanDecides } from "./model.ts";
import type { Result, Reuse, SeriesNumber } from "./model.ts";
import type { StagePhase, StageSpec, Step, Tag, TaskSet } from "./model.ts";

/** What happens to the task when one of its attempts has ended. */
export type Next =
  | { readonly do: "ready" }
  | { readonly do: "retry"; readonly atMs: number }
  | { readonly do: "fail" }
  | { readonly do: "cancel" }
  /** Another attempt of the task goes on, or the task's phase was decided before. */
  | { readonly do: "nothing" };

export type AttemptOutcome = "failed" | "expired" | "timed-out" | "released" | "cancelled" | "superseded";

/** Who takes a lock: a job (`stage` is -1), a stage, or a task. */
export type LockUser = { readonly job: number; readonly stage: number; readonly task?: number };

export type Event =
  | { readonly kind: "took-over"; readonly epoch: number; readonly node: string; readonly at: number }
  | {
      readonly kind: "tenant-set";
      readonly tenant: string;
      readonly weight: number;
      readonly runningMax: number;
      readonly queuedMax: number;
      readonly home: number;
    }
  | {
      readonly kind: "quota-lent";
      readonly tenant: string;
      readonly borrower: number;
      readonly slots: number;
      readonly untilMs: number;
      /** The slice's number, which grows. */
      readonly slice?: number;
      /** The slice that the borrower uses: slices with smaller numbers no longer count. */
      readonly holds?: number;
      readonly at?: number;
    }
  | { readonly kind: "quota-taken"; readonly tenant: string; readonly slots: number; readonly untilMs: number }
  | {
      readonly kind: "job-submitted";
      readonly job: number;
      /** Tasks of the stages that were known at submission are numbered from here, in order. */
      readonly firstTask: number;
      readonly tenant: string;
      readonly door: string;
      readonly name: string;
      readonly key?: string;
      readonly keyUntilMs?: number;
      readonly payloadHash: string;
      readonly mergeKey?: string;
      readonly subscriber?: string;
      readonly leaveGraceMs?: number;
      readonly priority: number;
      readonly spec: string;
      readonly stages: readonly StageSpec[];
      readonly deadlineAtMs: number;
      readonly cancelGraceMs?: number;
      readonly lock?: LockSpec;
      readonly reuse?: readonly Reuse[];
      readonly trace?: string;
      readonly tags?: readonly Tag[];
      readonly series?: SeriesNumber;
      readonly notify?: readonly Notice[];
      readonly tracked?: true;
      readonly at: number;
    }
  | {
      readonly kind: "job-joined";
      readonly job: number;
      readonly subscriber?: string;
      readonly key?: string;
      readonly keyUntilMs?: number;
      readonly payloadHash: string;
      readonly priority: number;
      readonly at: number;
    }
  | { readonly kind: "job-left"; readonly job: number; readonly subscriber: string; readonly at: number }
  | ({ readonly kind: "lock-queued"; readonly at: number } & LockUser)
  | ({ readonly kind: "lock-granted"; readonly at: number } & LockUser)
  /** The holder has ended, and so have all of its claims: the lock is free for the next one. */
  | ({ readonly kind: "lock-freed"; readonly at: number } & LockUser)
  /** The task made way for a newer holder of its lock. Its stage goes on, and cannot complete. */
  | { readonly kind: "task-displaced"; readonly task: number; readonly reason: string; readonly at: number }
  | {
      readonly kind: "stage-ready";
      readonly job: number;
      readonly stage: number;
      /** The number of the planning task, for a stage that has to be planned. */
      readonly planTask?: number;
      readonly at: number;
    }
  | {
      readonly kind: "stage-planned";
      readonly job: number;
      readonly stage: number;
      readonly generation: number;
      readonly token: number;
      /** Exactly one of `set` and `sets`, which came later. */
      readonly set?: TaskSet;
      readonly sets?: readonly TaskSet[];
      /** What the plan decided about the stage: a lock is taken before the tasks are queued. */
      readonly decides?: PlanDecides;
      /** Tasks are numbered from here, through all sets. */
      readonly firstTask: number;
      readonly at: number;
    }
  | {
      readonly kind: "plan-waiting";
      readonly task: number;
      readonly token: number;
      readonly untilMs: number;
      readonly signals: readonly string[];
      readonly at: number;
    }
  /** The planner said skip or fail; the end of the stage follows as an event of its own. */
  | { readonly kind: "plan-closed"; readonly task: number; readonly token: number; readonly at: number }
  | {
      readonly kind: "signalled";
      readonly job: number;
      readonly stage: number;
      readonly id: string;
      readonly name: string;
      readonly payload: string;
      /** Who sent it. */
      readonly by?: string;
      readonly at: number;
    }
  | { readonly kind: "plan-woken"; readonly task: number; readonly at: number }
  | {
      readonly kind: "stage-ended";
      readonly job: number;
      readonly stage: number;
      readonly phase: StagePhase;
      readonly reason: string;
      readonly at: number;
    }
  /**
   * Opens the stage's next generation: "RUNNING" where a task runs again, "BLOCKED" where the stage is planned again.
   */
  | {
      readonly kind: "stage-reopened";
      readonly job: number;
      readonly stage: number;
      readonly generation: number;
      readonly phase: "RUNNING" | "BLOCKED";
      /** The number from which a stage without a planner numbers its new tasks. */
      readonly firstTask: number;
      readonly at: number;
    }
  | {
      readonly kind: "claimed";
      readonly task: number;
      readonly token: number;
      readonly executor: string;
      readonly leaseMs: number;
      readonly started: boolean;
      readonly nonce: string;
      readonly at: number;
    }
  | { readonly kind: "started"; readonly task: number; readonly token: number; readonly at: number }
  | {
      readonly kind: "reported";
      readonly task: number;
      readonly token: number;
      readonly steps: readonly Step[];
      readonly at: number;
    }
  | {
      readonly kind: "committed";
      readonly task: number;
      readonly token: number;
      readonly result: Result;
      readonly at: number;
    }
  /** The result has been published. */
  | {
      readonly kind: "published";
      readonly job: number;
      readonly task: number;
      readonly generation: number;
      readonly at: number;
    }
  /** The job ended long ago, and some of its results could not be published: stop trying. */
  | { readonly kind: "publishing-given-up"; readonly job: number; readonly at: number }
  /** A re-run uses an earlier job's result for the task instead of running it. */
  | { readonly kind: "reused"; readonly task: number; readonly result: Result; readonly at: number }
  | {
      readonly kind: "attempt-ended";
      readonly task: number;
      readonly token: number;
      readonly outcome: AttemptOutcome;
      readonly reason: FailReason;
      readonly message: string;
      /** What the attempt left nevertheless. */
      readonly result?: Result;
      readonly next: Next;
      readonly at: number;
    }
  /** The task's next attempt gets this with its grant. */
  | {
      readonly kind: "checkpointed";
      readonly task: number;
      readonly token: number;
      readonly checkpoint: Checkpoint;
      readonly at: number;
    }
  /** A void claim (superseded, timed out) is known to have stopped, or its lease has expired. */
  | {
      readonly kind: "claim-gone";
      readonly task: number;
      readonly token: number;
      readonly executor: string;
      readonly at: number;
    }
  | { readonly kind: "requeued"; readonly task: number; readonly at: number }
  | { readonly kind: "task-failed"; readonly task: number; readonly reason: string; readonly at: number }
  /**
   * Unclaimed tasks of the stage are cancelled at once; claimed ones are CANCELLING until their claims have ended. The
   * stage ends in `phase` when nothing of it is running any more.
   */
  | {
      readonly kind: "stage-cancelling";
      readonly job: number;
      readonly stage: number;
      readonly phase: "CANCELLED" | "FAILED";
      readonly reason: string;
      readonly at: number;
    }
  | {
      readonly kind: "invalidated";
      readonly task: number;
      readonly generation: number;
      readonly reason: string;
      readonly at: number;
    }
  /** No executor took the next tasks of an array in time: those that were never queued fail with them. */
  | {
      readonly kind: "rest-failed";
      /** The number of its first task. */
      readonly array: number;
      /** The place of the first of those that fail. */
      readonly from: number;
      readonly reason: string;
      readonly at: number;
    }
  /** All tasks of the stage have ended: the owner is to write the manifest of their results under this number. */
  | {
      readonly kind: "manifest-due";
      readonly job: number;
      readonly stage: number;
      readonly no: number;
      readonly at: number;
    }
  | {
      readonly kind: "manifest-written";
      readonly job: number;
      readonly stage: number;
      readonly no: number;
      readonly digest: Digest;
      readonly at: number;
    }
  | { readonly kind: "speculated"; readonly task: number; readonly at: number }
  /** Stops every stage of the job as stage-cancelling does; the job ends in `phase` once nothing of it is running. */
  | {
      readonly kind: "job-cancelling";
      readonly job: number;
      /** Stages that run after any end, and are not planned yet, are spared until this instant. */
      readonly graceUntilMs?: number;
      readonly phase: "CANCELLED" | "FAILED";
      readonly reason: string;
      readonly at: number;
    }
  | {
      readonly kind: "job-ended";
      readonly job: number;
      readonly phase: JobPhase;
      readonly reason: string;
      readonly at: number;
    }
  /** The job's end has been told to the one that its notice with this index names, or never will be. */
  | {
      readonly kind: "notified";
      readonly job: number;
      readonly notice: number;
      readonly outcome: NoticeOutcome;
      readonly at: number;
    }
  | { readonly kind: "forgotten"; readonly jobs: readonly number[] }
  | { readonly kind: "executor-drained"; readonly executor: string; readonly reason: string; readonly untilMs: number }
  | { readonly kind: "executor-resumed"; readonly executor: string };

export type EventKind = Event["kind"];
export type EventOf<K extends EventKind> = Extract<Event, { kind: K }>;

/** Changes that are not logged because a new owner does not need them: see `applySoft`. */
export type SoftEvent =
  | {
      readonly kind: "renewed";
      readonly executor: string;
      /** Void tokens that the executor still names: it works on them until it receives the answer to this renewal. */
      readonly silent: readonly number[];
      /** Up to which signal the executor has heard; left out if none of its claims can get any. */
      readonly heard?: readonly { readonly token: number; readonly number: number }[];
      readonly at: number;
    }
  | {
      readonly kind: "executor-seen";
      readonly executor: string;
      readonly offers: readonly string[];
      readonly tenant: string | undefined;
      readonly at: number;
    }
  /** The oldest request keys leave memory: they have expired, or there are too many and the journal has them too. */
  | { readonly kind: "keys-let-go"; readonly count: number; readonly elsewhereUntilMs: number }
  | { readonly kind: "executors-faded"; readonly executors: readonly string[] }
  /** A slice of the tenant's quota has ended: check the tenant's quota again. */
  | { readonly kind: "quota-passed"; readonly tenant: string }
  /** Time passed: the newest instant that the shard has acted on (K11). */
  | { readonly kind: "passed"; readonly at: number }
  /**
   * The clock jumped further than it can in a running shard: the shard was asleep, and no lease expired meanwhile
   * (K11).
   */
  | { readonly kind: "slept"; readonly at: number; readonly forMs: number };

/**
 * Every kind that this program can read, with the lowest feature level at which a cluster may write it. Everything in
 * the first release is level 1. The compiler keeps the table complete.
 */
export const featureOf = {
  "took-over": 1,
  "tenant-set": 1,
  "quota-lent": 1,
  "quota-taken": 1,
  "job-submitted": 1,
  "job-joined": 1,
  "job-left": 1,
  "lock-queued": 1,
  "lock-granted": 1,
  "lock-freed": 1,
  "task-displaced": 4,
  "stage-ready": 1,
  "stage-planned": 1,
  "plan-waiting": 1,
  "plan-closed": 1,
  signalled: 1,
  "plan-woken": 1,
  "stage-ended": 1,
  "stage-reopened": 1,
  claimed: 1,
  started: 1,
  reported: 1,
  committed: 1,
  published: 1,
  "publishing-given-up": 1,
  reused: 1,
  "attempt-ended": 1,
  "claim-gone": 1,
  requeued: 1,
  "task-failed": 1,
  invalidated: 1,
  speculated: 1,
  "rest-failed": 3,
  "manifest-due": 3,
  "manifest-written": 3,
  "stage-cancelling": 1,
  "job-cancelling": 1,
  "job-ended": 1,
  notified: 3,
  forgotten: 1,
  "executor-drained": 1,
  "executor-resumed": 1,
  checkpointed: 3,
} as const satisfies Readonly<Record<EventKind, number>>;
