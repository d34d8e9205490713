/**
 * The queries that a shard answers, and the answers. They change nothing; `answer` in kernel/read/answer.ts is pure.
 */
import type { Digest } from "#base/digest.ts";
import type { Failure, FailureCounts, JobPhase, Result, SeriesNumber, Signal } from "#kernel/model/model.ts";
import type { StagePhase, Step, Tag, TaskPhase } from "#kernel/model/model.ts";

export type Query =
  | {
      readonly kind: "job";
      readonly job: number;
      readonly tenant?: string;
      readonly tasksMax?: number;
      /** Only tasks of this stage, without those that planning is done by. */
      readonly stage?: number;
      /** With a stage: leaves out so many of its tasks, the first ones. */
      readonly tasksFrom?: number;
    }
  | {
      readonly kind: "jobs";
      readonly tenant?: string;
      readonly door?: string;
      readonly limit: number;
      readonly phase?: JobPhase;
      /** Only jobs with all of these tags. */
      readonly tags?: readonly Tag[];
      /** Only jobs submitted at or after `fromMs`, and before `toMs`. */
      readonly fromMs?: number;
      readonly toMs?: number;
      /** Only jobs with a smaller number: the last one of the previous page. */
      readonly before?: number;
    }
  /** How many jobs in memory have not ended, by phase. */
  | {
      readonly kind: "count";
      readonly tenant?: string;
      readonly door?: string;
      readonly tags?: readonly Tag[];
      readonly fromMs?: number;
      readonly toMs?: number;
    }
  | { readonly kind: "task"; readonly task: number; readonly tenant?: string }
  /** Why a job's work is not running, answered from the state alone: for the whole job, or for one stage or task. */
  | ({ readonly kind: "why"; readonly job: number; readonly tenant?: string } & WhyOf)
  /** A planner's inputs: the spec, how the needs ended with their results, and the signals. Paged by task. */
  | {
      readonly kind: "plan-inputs";
      readonly task: number;
      readonly token: number;
      readonly tenant?: string;
      readonly from?: { readonly stage: number; readonly index: number };
      readonly limit: number;
    }
  /** With a tenant: only the executors that serve it. */
  | { readonly kind: "executors"; readonly tenant?: string }
  | { readonly kind: "stats" };

/** The answer has few lines: to ask about one of many tasks, name it. */
export type WhyOf = { readonly stage?: number; readonly task?: number };

export type ClaimView = {
  readonly token: number;
  readonly executor: string;
  readonly expiresInMs: number;
  readonly started: boolean;
};

export type CheckpointView = { readonly token: number; readonly agoMs: number };

export type TaskView = {
  readonly task: number;
  readonly job: number;
  readonly stage: number;
  readonly key: string;
  readonly kind: string;
  readonly phase: TaskPhase;
  readonly planning: boolean;
  readonly generation: number;
  readonly attempts: number;
  readonly claims: readonly ClaimView[];
  readonly result: Result | undefined;
  readonly lastFailure: Failure | undefined;
  /** The token under which the task's last checkpoint was recorded, and how long ago. */
  readonly checkpoint?: CheckpointView | undefined;
  readonly steps: readonly Step[];
  readonly retryInMs: number | undefined;
};

export type StageView = {
  readonly stage: number;
  readonly name: string;
  readonly needs: readonly number[];
  readonly phase: StagePhase;
  readonly reason: string;
  readonly generation: number;
  readonly tasks: number;
  readonly done: number;
  readonly failed: number;
  readonly running: number;
  readonly waitsForSignals: readonly string[];
  /** The newest signals that it received, oldest first. */
  readonly signals?: readonly Signal[] | undefined;
  /** Tasks that share one spec; of them, JobView lists only those that are running or failed. */
  readonly arrays?: readonly ArrayView[];
  /** The blob that lists its results: see shard/manifest/format.ts. */
  readonly manifest?: Digest | undefined;
};

/** An array: its tasks' numbers begin at `task`, and their indices at `first`. */
export type ArrayView = { readonly task: number; readonly count: number; readonly first: number };

export type JobView = {
  readonly job: number;
  readonly tenant: string;
  readonly door: string;
  readonly name: string;
  readonly phase: JobPhase;
  readonly reason: string;
  readonly priority: number;
  readonly spec: string;
  readonly submittedAtMs: number;
  readonly endedAtMs: number | undefined;
  readonly subscribers: number;
  readonly stages: readonly StageView[];
  readonly tags?: readonly Tag[] | undefined;
  readonly series?: SeriesNumber | undefined;
  /** The first tasks of the stage; the query `task` answers for any single one. */
  readonly tasks: readonly TaskView[];
};

export type JobLine = {
  readonly job: number;
  readonly tenant: string;
  readonly door: string;
  readonly name: string;
  readonly phase: JobPhase;
  readonly priority: number;
  readonly submittedAtMs: number;
  readonly endedAtMs: number | undefined;
  readonly tasks: number;
  readonly done: number;
  readonly tags?: readonly Tag[] | undefined;
  readonly series?: SeriesNumber | undefined;
};

export type JobCount = {
  readonly phases: readonly { readonly phase: JobPhase; readonly jobs: number }[];
  /** There were more jobs to go through than one answer may take: there may be more of each. */
  readonly capped: boolean;
};

export type WhyReason =
  | { readonly kind: "running"; readonly executor: string }
  | { readonly kind: "ended"; readonly phase: string }
  | { readonly kind: "needs"; readonly stages: readonly string[] }
  | { readonly kind: "lock"; readonly name: string; readonly heldBy: readonly number[]; readonly ahead: number }
  | { readonly kind: "signal"; readonly names: readonly string[]; readonly forMs: number }
  | { readonly kind: "back-off"; readonly forMs: number; readonly lastFailure: string }
  | { readonly kind: "parallel-max"; readonly limit: number }
  | { readonly kind: "quota"; readonly running: number; readonly runningMax: number }
  /** No executor known to the shard can run it; the closest one lacks these labels. */
  | { readonly kind: "no-executor"; readonly nearest: string | undefined; readonly missing: readonly string[] }
  | { readonly kind: "drained"; readonly executors: readonly string[] }
  /** The job was cancelled; stages that run after any end still have this long. */
  | { readonly kind: "cleaning-up"; readonly stages: readonly string[]; readonly forMs: number }
  /** All work of the job is done; this many of its results are still being published, the oldest since this time. */
  | { readonly kind: "publishing"; readonly results: number; readonly forMs: number }
  /** Suitable executors are busy; this many tasks of the tenant are ahead. */
  | { readonly kind: "queued"; readonly position: number; readonly executors: number; readonly tenantsAhead: number }
  /** An array, or one of its tasks that is not queued yet: then `ahead` tasks are queued before it. */
  | {
      readonly kind: "array";
      readonly count: number;
      readonly ended: number;
      readonly running: number;
      readonly queued: number;
      readonly ahead: number;
    }
  /** The job has ended; this many stages of other jobs have not received its end notice yet. */
  | { readonly kind: "notices"; readonly notices: number; readonly forMs: number };

export type Why = {
  readonly task: number;
  readonly stage: number;
  readonly key: string;
  readonly phase: string;
  readonly because: WhyReason;
} & WhyBesides;

/** What else is known of a task, if anything. */
export type WhyBesides = {
  /** The next attempt goes on from here. */
  readonly checkpoint?: CheckpointView | undefined;
  /** How its attempts failed, by reason. */
  readonly failures?: FailureCounts | undefined;
  /** Signals to its stage that its planner or its executor has not received yet: the newest, oldest first. */
  readonly pending?: readonly string[] | undefined;
  /** The executor of its second attempt, besides the one that runs. */
  readonly second?: string | undefined;
};

export type PlanInputs = {
  /** The job was cancelled, and the stage runs nevertheless: why, and how long it has for that. */
  readonly cancelled?: { readonly reason: string; readonly forMs: number } | undefined;
  readonly spec: string;
  readonly stage: string;
  readonly generation: number;
  readonly needs: readonly {
    readonly stage: number;
    readonly name: string;
    readonly phase: StagePhase;
    readonly generation: number;
    /** Lists its results: those of an array are not among `results`. */
    readonly manifest?: Digest | undefined;
  }[];
  readonly signals: readonly Signal[];
  readonly results: readonly {
    readonly stage: number;
    readonly key: string;
    readonly generation: number;
    readonly phase: TaskPhase;
    readonly result: Result | undefined;
    /** Of a task that has none, if one of its attempts failed. */
    readonly failure?: Failure | undefined;
  }[];
  /** Where to continue when not all results fitted. */
  readonly next: { readonly stage: number; readonly index: number } | undefined;
};

export type ExecutorView = {
  readonly executor: string;
  readonly offers: readonly string[];
  readonly claims: number;
  readonly drained: string | undefined;
  readonly failures: number;
  readonly seenAgoMs: number;
};

export type Stats = {
  readonly shard: number;
  readonly jobs: number;
  readonly liveJobs: number;
  readonly tasks: number;
  readonly ready: number;
  readonly claims: number;
  /** Results that are committed and not published yet. */
  readonly unpublished: number;
  readonly tenants: number;
  readonly executors: number;
  readonly stateBytes: number;
  readonly nowMs: number;
  /** The sum of the weights of tenants with ready work; executors choose by it which shard to visit. */
  readonly readyWeight: number;
};

export type Answers = {
  job: JobView;
  jobs: { readonly jobs: readonly JobLine[] };
  count: JobCount;
  task: TaskView;
  why: { readonly why: readonly Why[] };
  "plan-inputs": PlanInputs;
  executors: { readonly executors: readonly ExecutorView[] };
  stats: Stats;
};
export type Answer = Answers[Query["kind"]];
