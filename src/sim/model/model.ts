/**
 * A shard's state according to its durable log, read event by event (model/apply.ts) and independently of the kernel:
 * small, plain, without any of its indices. The checkers compare every answer, and every further event of the log, with
 * this.
 */
import type { Digest } from "#base/digest.ts";
import type { Notice } from "#kernel/model/model.ts";
import type { Submit } from "#kernel/model/command.ts";
import type { Event, EventOf } from "#kernel/model/event.ts";
import type {
  FailReason,
  JobPhase,
  LockSpec,
  StagePhase,
  StageSpec,
  TaskSet,
  TaskTemplate,
} from "#kernel/model/model.ts";
import { keysOf } from "#kernel/model/task-set.ts";

export type ModelClaim = {
  readonly token: number;
  readonly executor: string;
  readonly leaseMs: number;
  started: boolean;
  /** The task's checkpoint when it was granted, and those recorded under it. */
  readonly checkpoints: Set<string | undefined>;
  /** Its token is valid. */
  live: boolean;
  /** Known to have stopped, or its lease expired. */
  gone: boolean;
};

export type TaskStanding = "held" | "ready" | "claimed" | "retry" | "waiting" | "cancelling" | "over";

export type ModelTask = {
  readonly no: number;
  readonly job: ModelJob;
  readonly stage: ModelStage;
  readonly key: string;
  readonly planning: boolean;
  readonly template: TaskTemplate;
  standing: TaskStanding;
  generation: number;
  retryAtMs: number;
  /** A second attempt has been allowed. */
  speculated: boolean;
  /** Attempts of this generation that were lost to infrastructure. */
  losses: number;
  /** Its attempts that ended without a result, by reason. */
  readonly failures: Map<FailReason, number>;
  /** Attempts that count, in this generation. */
  attempts: number;
  readonly claims: Map<number, ModelClaim>;
  /** Token of the result by generation; 0 for a reused one. */
  readonly results: Map<number, number>;
  /** By generation: the digests of the result. */
  readonly blobs: Map<number, string>;
  /** The last checkpoint, while the task has not ended. */
  checkpoint: string | undefined;
  /** It made way for a newer holder of its lock. */
  displaced: boolean;
  /** Of its own lock. */
  lock: "none" | "queued" | "held";
};

export type ModelStage = {
  readonly job: ModelJob;
  readonly index: number;
  /** As it was submitted, with what its plan decided. */
  spec: StageSpec;
  readonly submitted: StageSpec;
  /** Decided by its plan, while it still holds another. */
  wants: LockSpec | undefined;
  phase: StagePhase;
  generation: number;
  cancelled: boolean;
  tasks: ModelTask[];
  planning: ModelTask | undefined;
  readonly plannedIn: Set<number>;
  readonly signals: Set<string>;
  lock: "none" | "queued" | "held";
  /** The number under which its manifest is to be written, and the manifest. */
  manifestDue: number | undefined;
  manifest: Digest | undefined;
  /** Whether one of its sets, as submitted or planned, is an array. */
  hasArray: boolean;
};

export type ModelJob = {
  readonly no: number;
  readonly tenant: string;
  readonly door: string;
  readonly payloadHash: string;
  readonly lock: LockSpec | undefined;
  readonly stages: ModelStage[];
  readonly submitted: EventOf<"job-submitted">;
  readonly subscribers: Set<string>;
  readonly left: Set<string>;
  priority: number;
  phase: JobPhase;
  /** Every phase it has had, with the batch in which it began. */
  readonly phases: { readonly seq: number; readonly phase: JobPhase }[];
  lockState: "none" | "queued" | "held";
  cancelled: boolean;
  /** 0: it has no grace, or that is over. */
  graceUntilMs: number;
  forgotten: boolean;
};

/** A result that asked to be published: "void" if it was invalidated before. */
export type ModelPublication = {
  readonly job: ModelJob;
  readonly task: number;
  readonly generation: number;
  readonly publish: string;
  standing: "waiting" | "published" | "void" | "given up";
};

export type ModelKey = { readonly job: number; readonly payloadHash: string; readonly untilMs: number };

export class ShardModel {
  readonly shard: number;
  epoch = 0;
  seq = 0;
  atMs = 0;
  tokenMax = 0;
  readonly jobs = new Map<number, ModelJob>();
  readonly tasks = new Map<number, ModelTask>();
  readonly keys = new Map<string, ModelKey>();
  /**
   * All jobs that each key was ever bound to, with their payloads: a new one only after the retention of the old one.
   */
  readonly bindings = new Map<string, Map<number, string>>();
  readonly tenants = new Map<string, EventOf<"tenant-set">>();
  /** By `task/generation`. */
  readonly publications = new Map<string, ModelPublication>();
  /** The last number of each series. */
  readonly series = new Map<string, number>();
  /** Ends that are still to be told, by `job/notice`. */
  readonly owed = new Map<string, Notice>();
  liveJobs = 0;

  constructor(shard: number) {
    this.shard = shard;
  }

  get unpublished(): number {
    return this.publications.values().reduce((sum, { standing }) => sum + (standing === "waiting" ? 1 : 0), 0);
  }

  stage(job: number, stage: number): ModelStage | undefined {
    return this.jobs.get(job)?.stages[stage];
  }

  /** The job that equal submissions join. */
  joinable({ tenant, door, mergeKey }: Pick<Submit, "tenant" | "door" | "mergeKey">): ModelJob | undefined {
    if (mergeKey === undefined) return undefined;
    const isEqual = (job: ModelJob): boolean =>
      job.submitted.mergeKey === mergeKey && job.tenant === tenant && job.door === door;
    return this.jobs.values().find((job) => isEqual(job) && isUnderWay(job));
  }

  claim(task: number, token: number): ModelClaim | undefined {
    return this.tasks.get(task)?.claims.get(token);
  }

  addTasks(stage: ModelStage, sets: readonly TaskSet[], firstTask: number): void {
    stage.hasArray ||= sets.some(({ array }) => array !== undefined);
    const tasks = sets.flatMap((set) => [...keysOf(set)].map((key) => ({ key, template: set.template })));
    stage.tasks = tasks.map(({ key, template }, i) => newTask(stage, firstTask + i, key, template, false));
    for (const task of stage.tasks) this.tasks.set(task.no, task);
  }
}

/** What each kind of event changes. */
export type Folds = { readonly [K in Event["kind"]]: (model: ShardModel, event: EventOf<K>) => void };

export const isOver = (phase: JobPhase | StagePhase): boolean =>
  ["SUCCEEDED", "COMPLETED", "FAILED", "SKIPPED", "CANCELLED"].includes(phase);

export const isUnderWay = (job: ModelJob): boolean => !isOver(job.phase) && !job.cancelled;

export const liveClaims = (task: ModelTask): readonly ModelClaim[] =>
  [...task.claims.values()].filter(({ live }) => live);

export const newStage = (job: ModelJob, index: number, spec: StageSpec): ModelStage => ({
  job,
  index,
  spec,
  submitted: spec,
  wants: undefined,
  phase: "BLOCKED",
  generation: 1,
  cancelled: false,
  tasks: [],
  planning: undefined,
  plannedIn: new Set(),
  signals: new Set(),
  lock: "none",
  manifestDue: undefined,
  manifest: undefined,
  hasArray: spec.tasks?.array !== undefined,
});

export const newTask = (
  stage: ModelStage,
  no: number,
  key: string,
  template: TaskTemplate,
  planning: boolean,
): ModelTask => ({
  no,
  job: stage.job,
  stage,
  key,
  planning,
  template,
  standing: "held",
  generation: stage.generation,
  retryAtMs: 0,
  speculated: false,
  attempts: 0,
  losses: 0,
  failures: new Map(),
  claims: new Map(),
  results: new Map(),
  blobs: new Map(),
  checkpoint: undefined,
  displaced: false,
  lock: "none",
});
