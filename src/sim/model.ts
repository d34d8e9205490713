/**
 * What a shard's durable log says, read event by event and independently of the kernel: small, plain, without any of
 * its indices. The checkers compare everything that anybody was told, and everything that the log goes on to say,
 * with this.
 */
import type { Submit } from "#kernel/command.ts";
import type { Event, EventOf } from "#kernel/event.ts";
import type { JobPhase, LockSpec, StagePhase, StageSpec, TaskPlan, TaskTemplate } from "#kernel/model.ts";

export type ModelClaim = {
  readonly token: number;
  readonly executor: string;
  readonly leaseMs: number;
  started: boolean;
  /** Its word counts. */
  live: boolean;
  /** Known to have stopped, or its lease ran out. */
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
  /** Attempts that count, in this generation. */
  attempts: number;
  readonly claims: Map<number, ModelClaim>;
  /** Token of the result by generation; 0 for a reused one. */
  readonly results: Map<number, number>;
};

export type ModelStage = {
  readonly job: ModelJob;
  readonly index: number;
  readonly spec: StageSpec;
  phase: StagePhase;
  generation: number;
  cancelled: boolean;
  tasks: ModelTask[];
  planning: ModelTask | undefined;
  readonly plannedIn: Set<number>;
  readonly signals: Set<string>;
  lock: "none" | "queued" | "held";
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
  /** Every phase it has had, with the batch that brought it. */
  readonly phases: { readonly seq: number; readonly phase: JobPhase }[];
  lockState: "none" | "queued" | "held";
  cancelled: boolean;
  forgotten: boolean;
};

/** A result that asked to be published: "void" when it was invalidated before. */
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
  /** All jobs that each key was ever bound to, with their payloads: anew only when it was no longer retained. */
  readonly bindings = new Map<string, Map<number, string>>();
  readonly tenants = new Map<string, EventOf<"tenant-set">>();
  /** By `task/generation`. */
  readonly publications = new Map<string, ModelPublication>();
  liveJobs = 0;

  constructor(shard: number) {
    this.shard = shard;
  }

  apply(event: Event): void {
    if ("at" in event) this.atMs = Math.max(this.atMs, event.at);
    const fold = folds[event.kind] as (model: ShardModel, event: Event) => void;
    fold(this, event);
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

  addTasks(stage: ModelStage, template: TaskTemplate, plans: readonly TaskPlan[], firstTask: number): void {
    stage.tasks = plans.map((plan, i) => newTask(stage, firstTask + i, plan.key, template, false));
    for (const task of stage.tasks) this.tasks.set(task.no, task);
  }
}

type Folds = { readonly [K in Event["kind"]]: (model: ShardModel, event: EventOf<K>) => void };

const nothing = () => {};

const folds: Folds = {
  "took-over": nothing,
  "tenant-set": (model, event) => void model.tenants.set(event.tenant, event),
  "quota-lent": nothing,
  "quota-taken": nothing,
  "job-submitted"(model, event) {
    const job: ModelJob = {
      no: event.job,
      tenant: event.tenant,
      door: event.door,
      payloadHash: event.payloadHash,
      lock: event.lock,
      stages: [],
      submitted: event,
      subscribers: new Set(event.subscriber === undefined ? [] : [event.subscriber]),
      left: new Set(),
      priority: event.priority,
      phase: event.lock ? "WAITING" : "RUNNING",
      phases: [{ seq: model.seq + 1, phase: event.lock ? "WAITING" : "RUNNING" }],
      lockState: "none",
      cancelled: false,
      forgotten: false,
    };
    let firstTask = event.firstTask;
    for (const [index, spec] of event.stages.entries()) {
      const stage = newStage(job, index, spec);
      job.stages.push(stage);
      if (spec.tasks) model.addTasks(stage, spec.tasks.template, spec.tasks.tasks, firstTask);
      firstTask += spec.tasks?.tasks.length ?? 0;
    }
    model.jobs.set(job.no, job);
    model.liveJobs += 1;
    bindKey(model, event);
  },
  "job-joined"(model, event) {
    const job = model.jobs.get(event.job);
    if (job && event.subscriber !== undefined) job.subscribers.add(event.subscriber);
    if (job) job.priority = event.priority;
    bindKey(model, event);
  },
  "job-left"(model, event) {
    const job = model.jobs.get(event.job);
    job?.subscribers.delete(event.subscriber);
    job?.left.add(event.subscriber);
  },
  "lock-queued": (model, event) => setLock(model, event, "queued"),
  "lock-granted"(model, event) {
    setLock(model, event, "held");
    const job = model.jobs.get(event.job);
    if (event.stage === -1 && job?.phase === "WAITING") setPhase(model, job, "RUNNING");
  },
  "lock-freed": (model, event) => setLock(model, event, "none"),
  "stage-ready"(model, event) {
    const stage = model.stage(event.job, event.stage);
    if (!stage) return;
    if (event.planTask === undefined) return run(stage);
    stage.phase = "READY";
    const { plan } = stage.spec;
    if (!plan) return;
    const template: TaskTemplate = {
      ...planDefaults,
      kind: plan.kind,
      requires: plan.requires,
      leaseMs: plan.leaseMs,
      attemptsMax: plan.attemptsMax,
    };
    stage.planning = newTask(stage, event.planTask, "plan", template, true);
    stage.planning.standing = "ready";
    model.tasks.set(event.planTask, stage.planning);
  },
  "stage-planned"(model, event) {
    const stage = model.stage(event.job, event.stage);
    if (!stage) return;
    stage.plannedIn.add(event.generation);
    endPlanning(stage, event.token);
    model.addTasks(stage, event.set.template, event.set.tasks, event.firstTask);
    run(stage);
  },
  "plan-waiting"(model, event) {
    const task = model.tasks.get(event.task);
    if (!task) return;
    endClaim(task, event.token, true);
    task.attempts -= 1;
    task.standing = "waiting";
  },
  "plan-closed"(model, event) {
    const stage = model.tasks.get(event.task)?.stage;
    stage?.plannedIn.add(stage.generation);
    if (stage) endPlanning(stage, event.token);
  },
  signalled: (model, event) => void model.stage(event.job, event.stage)?.signals.add(event.id),
  "plan-woken": (model, event) => setReady(model, event.task),
  requeued: (model, event) => setReady(model, event.task),
  "stage-cancelling"(model, event) {
    const stage = model.stage(event.job, event.stage);
    if (stage) cancelStage(stage);
  },
  "job-cancelling"(model, event) {
    const job = model.jobs.get(event.job);
    if (!job) return;
    setPhase(model, job, "CANCELLING");
    job.cancelled = true;
    for (const stage of job.stages) cancelStage(stage);
  },
  "stage-ended"(model, event) {
    const stage = model.stage(event.job, event.stage);
    if (!stage) return;
    stage.phase = event.phase;
    for (const task of stage.tasks) task.standing = "over";
  },
  "stage-reopened"(model, event) {
    const stage = model.stage(event.job, event.stage);
    if (!stage) return;
    // Some of its tasks are done again: the plan stands.
    if (event.phase === "RUNNING" && stage.plannedIn.has(stage.generation)) stage.plannedIn.add(event.generation);
    stage.generation = event.generation;
    stage.phase = event.phase;
    if (event.phase === "RUNNING") return;
    for (const task of [...stage.tasks, ...(stage.planning ? [stage.planning] : [])]) {
      task.standing = "over";
      for (const claim of task.claims.values()) claim.live = false;
    }
    stage.planning = undefined;
    const template = stage.tasks[0]?.template;
    if (stage.spec.tasks && template) model.addTasks(stage, template, stage.spec.tasks.tasks, event.firstTask);
    else stage.tasks = [];
  },
  claimed(model, event) {
    const { token, executor, leaseMs, started } = event;
    model.tokenMax = Math.max(model.tokenMax, token);
    const task = model.tasks.get(event.task);
    if (!task) return;
    task.claims.set(token, { token, executor, leaseMs, started, live: true, gone: false });
    task.attempts += 1;
    task.standing = "claimed";
  },
  started(model, event) {
    const claim = model.claim(event.task, event.token);
    if (claim) claim.started = true;
  },
  reported: nothing,
  committed(model, event) {
    const task = model.tasks.get(event.task);
    if (!task) return;
    task.results.set(task.generation, event.token);
    const { job, no, generation } = task;
    const { publish } = event.result;
    if (publish !== undefined)
      model.publications.set(`${no}/${generation}`, { job, task: no, generation, publish, standing: "waiting" });
    endClaim(task, event.token, true);
    // A second attempt has lost its say, whether or not the log goes on to say so.
    for (const claim of task.claims.values()) claim.live = false;
    task.standing = "over";
  },
  published: (model, event) => setPublication(model, `${event.task}/${event.generation}`, "published"),
  "publishing-given-up"(model, event) {
    for (const [name, { job }] of model.publications) if (job.no === event.job) setPublication(model, name, "given up");
  },
  reused(model, event) {
    const task = model.tasks.get(event.task);
    if (!task) return;
    task.results.set(task.generation, 0);
    task.standing = "over";
  },
  "attempt-ended"(model, event) {
    const task = model.tasks.get(event.task);
    if (!task) return;
    endClaim(task, event.token, event.outcome !== "timed-out");
    if (event.outcome === "released") task.attempts -= 1;
    if (event.next.do !== "nothing") task.speculated = false;
    if (event.next.do === "ready") task.standing = "ready";
    if (event.next.do === "fail" || event.next.do === "cancel") task.standing = "over";
    if (event.next.do !== "retry") return;
    task.standing = "retry";
    task.retryAtMs = event.next.atMs;
  },
  "claim-gone"(model, event) {
    const claim = model.claim(event.task, event.token);
    if (claim) claim.gone = true;
  },
  "task-failed"(model, event) {
    const task = model.tasks.get(event.task);
    if (task) task.standing = "over";
  },
  invalidated(model, event) {
    const task = model.tasks.get(event.task);
    if (!task) return;
    setPublication(model, `${task.no}/${task.generation}`, "void");
    task.generation = event.generation;
    task.attempts = 0;
    task.speculated = false;
    task.standing = "ready";
  },
  speculated(model, event) {
    const task = model.tasks.get(event.task);
    if (task) task.speculated = true;
  },
  "job-ended"(model, event) {
    const job = model.jobs.get(event.job);
    if (!job) return;
    setPhase(model, job, event.phase);
    model.liveJobs -= 1;
  },
  forgotten(model, event) {
    for (const no of event.jobs) {
      const job = model.jobs.get(no);
      if (job) job.forgotten = true;
    }
  },
  "executor-drained": nothing,
  "executor-resumed": nothing,
};

const planDefaults = {
  retryOn: "infrastructure",
  backoffMs: 0,
  backoffMsMax: 0,
  queueMs: 0,
  attemptMs: 0,
  effects: "pure",
  speculate: false,
  graceMs: 0,
} as const;

export const isOver = (phase: JobPhase | StagePhase): boolean =>
  ["SUCCEEDED", "COMPLETED", "FAILED", "SKIPPED", "CANCELLED"].includes(phase);

export const isUnderWay = (job: ModelJob): boolean => !isOver(job.phase) && !job.cancelled;

export const liveClaims = (task: ModelTask): readonly ModelClaim[] =>
  [...task.claims.values()].filter(({ live }) => live);

const newStage = (job: ModelJob, index: number, spec: StageSpec): ModelStage => ({
  job,
  index,
  spec,
  phase: "BLOCKED",
  generation: 1,
  cancelled: false,
  tasks: [],
  planning: undefined,
  plannedIn: new Set(),
  signals: new Set(),
  lock: "none",
});

const newTask = (stage: ModelStage, no: number, key: string, template: TaskTemplate, planning: boolean): ModelTask => ({
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
  claims: new Map(),
  results: new Map(),
});

function setPhase(model: ShardModel, job: ModelJob, phase: JobPhase): void {
  job.phase = phase;
  job.phases.push({ seq: model.seq + 1, phase });
}

/** Which of a running stage's tasks are let into line (parallelMax) is the kernel's affair: all of them may be. */
function run(stage: ModelStage): void {
  stage.phase = "RUNNING";
  for (const task of stage.tasks) if (task.standing === "held") task.standing = "ready";
}

function endPlanning(stage: ModelStage, token: number): void {
  if (!stage.planning) return;
  endClaim(stage.planning, token, true);
  stage.planning.results.set(stage.generation, token);
  stage.planning.standing = "over";
}

function endClaim(task: ModelTask, token: number, gone: boolean): void {
  const claim = task.claims.get(token);
  if (!claim) return;
  claim.live = false;
  claim.gone ||= gone;
}

function setPublication(model: ShardModel, name: string, standing: ModelPublication["standing"]): void {
  const one = model.publications.get(name);
  if (one?.standing === "waiting") one.standing = standing;
}

function setReady(model: ShardModel, no: number): void {
  const task = model.tasks.get(no);
  if (task) task.standing = "ready";
}

function cancelStage(stage: ModelStage): void {
  if (isOver(stage.phase) || stage.cancelled) return;
  stage.cancelled = true;
  for (const task of [...stage.tasks, ...(stage.planning ? [stage.planning] : [])]) {
    if (task.standing === "over") continue;
    task.standing = liveClaims(task).length > 0 ? "cancelling" : "over";
  }
}

function setLock(
  model: ShardModel,
  at: { readonly job: number; readonly stage: number },
  to: ModelJob["lockState"],
): void {
  const job = model.jobs.get(at.job);
  const stage = job?.stages[at.stage];
  if (at.stage === -1 && job) job.lockState = to;
  else if (stage) stage.lock = to;
}

function bindKey(
  model: ShardModel,
  event: { readonly key?: string; readonly job: number; readonly payloadHash: string; readonly keyUntilMs?: number },
): void {
  if (event.key === undefined) return;
  const { job, payloadHash, keyUntilMs } = event;
  model.keys.set(event.key, { job, payloadHash, untilMs: keyUntilMs ?? 0 });
  const bound = model.bindings.get(event.key) ?? new Map<number, string>();
  model.bindings.set(event.key, bound.set(job, payloadHash));
}
