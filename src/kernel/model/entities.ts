/**
 * The things that a shard keeps in memory. Fields that describe them come first, then the fields that the indices need.
 * Only the files of `apply` change them. Millions of them exist at once: small, flat, one hidden class each.
 */
import type { Pace } from "./pace.ts";
import type {
  Checkpoint,
  FailReason,
  FailureCounts,
  JobPhase,
  LockSpec,
  Notice,
  PlanDecides,
  PlanSpec,
  Result,
  Reuse,
  SeriesNumber,
  Signal,
  StagePhase,
  Step,
  Tag,
  TaskPhase,
  TaskPlan,
  TaskTemplate,
} from "./model.ts";
import type { AttemptOutcome } from "./event.ts";
import type { TaskArray } from "./task-array.ts";
import type { Digest } from "#base/digest.ts";
import type { Account } from "#kernel/memory/memory.ts";
import type { PriorityList, TenantQueue, ReadyClass } from "#kernel/ready/ready-queue.ts";

/** Shared by all jobs without stages: never written to. */
const noStages: Stage[] = [];
const noTasks: Task[] = [];

export type Slice = { readonly slots: number; readonly untilMs: number; readonly no?: number };

export class Tenant {
  readonly name: string;
  /** Breaks ties between tenants with the same share; numbered in order of appearance. */
  readonly ordinal: number;
  weight = 1;
  runningMax = 0;
  queuedMax = 0;
  home: number;
  /** Tasks not yet ended and not claimed. */
  queued = 0;
  /** Tasks in the ready queues. */
  ready = 0;
  /** Live claims. */
  running = 0;
  jobs = 0;
  /** Memory used by its jobs in this shard, and in all shards that share the memory. */
  bytes = 0;
  account: Account;
  /** Orders tenants with equal shares: grows with every grant, divided by weight. */
  virtual = 0;
  /**
   * In the home shard: slots lent to other shards, by shard. A borrower that is lent fewer slots than before may use
   * the larger slice until it has received the smaller one. So the larger one counts until the borrower confirms the
   * smaller one, or until the larger one expires.
   */
  readonly lent = new Map<number, readonly Slice[]>();
  /** In the home shard: the number of the newest slice. */
  sliceNo = 0;
  /** In other shards: the slice that the home shard has lent. */
  slice = { slots: 0, untilMs: 0 };
  /** Out of quota: its queues are not served. */
  parked = false;
  readonly queues = new Map<ReadyClass, TenantQueue>();
  agendaAt = -1;
  agendaSlot = 0;

  constructor(name: string, ordinal: number, home: number, account: Account) {
    this.name = name;
    this.ordinal = ordinal;
    this.home = home;
    this.account = account;
  }
}

/** Who waits for a job. Kept only for jobs that end when their last subscriber leaves. */
export type Audience = {
  readonly subscribers: Set<string>;
  readonly leaveGraceMs: number;
  /**
   * When the job is cancelled because its last subscriber left and the grace is over; 0 while someone is subscribed.
   */
  abandonedAtMs: number;
};

/** The signals that a stage received, and those that its planner waits for. */
export type Gate = {
  readonly signals: Signal[];
  /** How many signals had arrived when the planning task was last claimed. */
  seen: number;
  waitsFor: readonly string[];
};

/** A committed result that is to be published; it stays in the outbox until its publication is confirmed. */
export type Publication = {
  readonly job: Job;
  readonly task: number;
  /** The task's own spec. It says what was run, whatever the result claims. */
  readonly spec: string;
  readonly generation: number;
  readonly result: Result;
  readonly committedAtMs: number;
};

/** What few jobs have. */
export type JobExtras = {
  readonly tags: readonly Tag[];
  readonly series: SeriesNumber | undefined;
  readonly notify: readonly Notice[];
  readonly tracked: boolean;
  /** Indices of the notices that are still to be told, once the job has ended. */
  owed: readonly number[];
};

export class Job {
  readonly no: number;
  readonly tenant: Tenant;
  readonly door: string;
  readonly name: string;
  readonly spec: string;
  stages: Stage[] = noStages;
  readonly submittedAtMs: number;
  readonly deadlineAtMs: number;
  phase: JobPhase = "RUNNING";
  reason = "";
  priority: number;
  endedAtMs = 0;
  mergeKey: string | undefined;
  lock: LockSpec | undefined;
  audience: Audience | undefined;
  reuse: readonly Reuse[] | undefined;
  trace: string | undefined;
  /** Undefined for most jobs. */
  extras: JobExtras | undefined;
  /** Results of its tasks that are not published yet, by task; undefined for none. */
  outbox: Map<number, Publication> | undefined;
  /** The phase in which the job ends when everything of it has stopped. */
  cancelled: "CANCELLED" | "FAILED" | undefined;
  /** When the grace of a cancelled job ends; 0: it has none. */
  graceUntilMs = 0;
  /** As submitted. */
  cancelGraceMs: number | undefined;
  stagesOpen: number;
  /** Claims whose executor may still be running something of this job, void claims included. */
  claims = 0;
  /** Estimated memory of the whole job: see weigh.ts. */
  bytes = 0;
  nextTodo: Job | Stage | null | undefined;
  agendaAt = -1;
  agendaSlot = 0;
  capturedIn = 0;

  constructor(
    no: number,
    tenant: Tenant,
    facts: {
      door: string;
      name: string;
      spec: string;
      priority: number;
      at: number;
      deadlineAtMs: number;
      stages: { readonly length: number };
    },
  ) {
    this.no = no;
    this.tenant = tenant;
    this.door = facts.door;
    this.name = facts.name;
    this.spec = facts.spec;
    this.priority = facts.priority;
    this.submittedAtMs = facts.at;
    this.deadlineAtMs = facts.deadlineAtMs;
    this.stagesOpen = facts.stages.length;
  }
}

/** A stage's constant facts, shared by all stages with the same facts. */
export type StageShape = {
  readonly name: string;
  readonly needs: readonly number[];
  readonly after: "success" | "end";
  readonly plan: PlanSpec | undefined;
  readonly planTemplate: TaskTemplate | undefined;
  readonly failFast: boolean;
  readonly mayFail: boolean;
  readonly parallelMax: number;
  readonly lock: LockSpec | undefined;
  /** Its results are put into a manifest even if it has no array. */
  readonly manifest: boolean;
};

/** The blob that lists a stage's results, one for each generation. */
export type Manifest = {
  /** The number under which the shard's owner is to write it; 0 while that is not due. */
  readonly no: number;
  readonly dueAtMs: number;
  readonly digest: Digest | undefined;
  /** The previous generation's manifest: results that have left memory are copied from there. */
  readonly base: Digest | undefined;
};

/** What the plan of a stage says besides one set of tasks; most say nothing. */
export type Planned = {
  readonly decides: PlanDecides;
  /** Of the second set and those after it. */
  readonly templates: readonly TaskTemplate[];
};

export class Stage {
  readonly job: Job;
  readonly index: number;
  readonly shape: StageShape;
  phase: StagePhase = "BLOCKED";
  reason = "";
  generation = 1;
  /** How many needs have not ended. */
  waiting: number;
  /** What the tasks share; undefined until they are known. */
  template: TaskTemplate | undefined;
  tasks: Task[] = noTasks;
  arrays: TaskArray[] | undefined;
  manifest: Manifest | undefined;
  planning: Task | undefined;
  /** Tasks without a final phase. */
  open = 0;
  done = 0;
  failed = 0;
  /** With parallelMax: tasks queued or claimed, and the index of the next held task. */
  active = 0;
  nextHeld = 0;
  cancelled: "CANCELLED" | "FAILED" | undefined;
  planned: Planned | undefined;
  gate: Gate | undefined;
  /** Results of the previous generation, reused for tasks whose key and spec stay the same. */
  kept: Map<string, { spec: string; result: Result }> | undefined;
  /** The total run time of its committed attempts, and how many there were. */
  /** Kept only for templates with a rule for speculation. */
  pace: Pace | undefined;
  runMsSum = 0;
  runs = 0;
  claims = 0;
  startedAtMs = 0;
  /** The lock that it waits for or holds, or is going to: of its spec, or of its plan. */
  lock: LockSpec | undefined;
  lockState: "none" | "queued" | "held" = "none";
  nextTodo: Job | Stage | null | undefined;
  capturedIn = 0;

  constructor(job: Job, index: number, shape: StageShape) {
    this.job = job;
    this.index = index;
    this.shape = shape;
    this.waiting = shape.needs.length;
    this.lock = shape.lock;
  }

  /** How many tasks it has, whether they exist as objects or not. */
  get size(): number {
    let size = this.tasks.length;
    if (this.arrays) for (const { plan } of this.arrays) size += plan.count;
    return size;
  }
}

/** How the last attempt of a task that ended without a result ended. */
export type LastEnd = {
  readonly token: number;
  readonly executor: string;
  readonly outcome: AttemptOutcome;
  readonly reason: FailReason;
  readonly message: string;
  readonly retryInMs: number | undefined;
  /** What it left nevertheless. */
  readonly result: Result | undefined;
};

export type KeptCheckpoint = Checkpoint & { readonly token: number; readonly atMs: number };

export class Task {
  readonly no: number;
  readonly stage: Stage;
  readonly index: number;
  readonly plan: TaskPlan;
  readonly template: TaskTemplate;
  /** The array that it belongs to; its index is its place there. */
  array: TaskArray | undefined;
  phase: TaskPhase = "READY";
  generation = 1;
  attempts = 0;
  /** Attempts of this generation that ran out of memory: the next one may be given more. */
  outOfMemory = 0;
  claim: Claim | undefined;
  /** A second live attempt, where speculation is allowed. */
  second: Claim | undefined;
  result: Result | undefined;
  /** The token that the result was committed under; 0 for a result taken over from an earlier job. */
  resultToken = 0;
  last: LastEnd | undefined;
  /** Attempts of this generation that failed, by reason. */
  failures: FailureCounts | undefined;
  /** Of the task's last attempt that recorded one, until the task ends. */
  checkpoint: KeptCheckpoint | undefined;
  steps: Step[] | undefined;
  speculated = false;
  queuedAtMs = 0;
  /** End of the back-off, or of the wait for a signal. */
  dueAtMs = 0;
  /** Its position in the queue; kept for the life of the task so that a retry does not lose its turn. */
  order = 0;
  list: PriorityList | undefined;
  prev: Task | undefined;
  next: Task | undefined;
  agendaAt = -1;
  agendaSlot = 0;
  capturedIn = 0;

  constructor(no: number, stage: Stage, index: number, plan: TaskPlan, template: TaskTemplate) {
    this.no = no;
    this.stage = stage;
    this.index = index;
    this.plan = plan;
    this.template = template;
  }
}

export class Claim {
  readonly task: Task;
  readonly token: number;
  readonly executor: Executor;
  readonly leaseMs: number;
  readonly grantedAtMs: number;
  /** 0 until started. */
  startedAtMs = 0;
  expiresAtMs: number;
  /** Time during which the shard had no running owner: it does not count against the attempt (K11). */
  sleptMs = 0;
  /** The number of the last signal that its executor acknowledged. Not logged: a new owner hears it again. */
  heard = 0;
  /** The token is no longer accepted (superseded, timed out), though the executor may not know that yet. */
  void = false;
  agendaAt = -1;
  agendaSlot = 0;

  constructor(task: Task, token: number, executor: Executor, leaseMs: number, grantedAtMs: number) {
    this.task = task;
    this.token = token;
    this.executor = executor;
    this.leaseMs = leaseMs;
    this.grantedAtMs = grantedAtMs;
    this.expiresAtMs = grantedAtMs + leaseMs;
  }
}

/** All executors that offer the same labels, and the classes of work that these labels satisfy. */
export type Signature = {
  readonly offers: ReadonlySet<string>;
  readonly matched: Set<ReadyClass>;
  /** How many of the shard's classes have been checked against the labels. */
  checked: number;
};

export class Executor {
  readonly id: string;
  offers: readonly string[] | undefined;
  tenant: string | undefined;
  readonly claims = new Map<number, Claim>();
  drained: { readonly reason: string; readonly untilMs: number } | undefined;
  /** Consecutive failures that point to this executor. */
  failures = 0;
  seenAtMs = 0;
  /** The last reserve request and what it was granted, so that a repeat gets the same answer. */
  nonce = "";
  granted: number[] = [];
  bytes = 0;
  agendaAt = -1;
  agendaSlot = 0;

  constructor(id: string) {
    this.id = id;
  }
}
