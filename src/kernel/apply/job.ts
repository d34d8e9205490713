import { Job, Stage, type StageShape, Task } from "#kernel/model/entities.ts";
import type { EventOf } from "#kernel/model/event.ts";
import { must } from "#base/assert.ts";
import type {
  FailureCounts,
  LockSpec,
  PlanDecides,
  Speculation,
  StageSpec,
  TaskPlan,
  TaskSet,
  TaskTemplate,
} from "#kernel/model/model.ts";
import { beforeChange } from "./moves.ts";
import type { State } from "#kernel/model/state.ts";
import {
  bytesOfAudience,
  bytesOfJobAlone,
  bytesOfKey,
  bytesOfNotices,
  bytesOfPlanned,
  bytesOfPlans,
  bytesOfShape,
  bytesOfSubscriber,
  bytesOfTags,
  bytesOfTaskLocks,
  bytesOfTemplate,
} from "#kernel/memory/weigh.ts";
import { sizeOf } from "#kernel/model/task-set.ts";
import { forgetArray, openArray } from "./arrays.ts";

export function applyJobSubmitted(state: State, event: EventOf<"job-submitted">): void {
  const tenant = state.tenant(event.tenant);
  const job = new Job(event.job, tenant, event);
  job.mergeKey = event.mergeKey;
  job.lock = event.lock;
  job.reuse = event.reuse;
  job.trace = event.trace;
  job.cancelGraceMs = event.cancelGraceMs;
  if (event.tags || event.series || event.notify || event.tracked) addExtras(state, job, event);
  if (event.lock) job.phase = "WAITING";
  if (event.subscriber !== undefined) {
    const { leaveGraceMs = 0 } = event;
    job.audience = { subscribers: new Set([event.subscriber]), leaveGraceMs, abandonedAtMs: 0 };
  }
  let taskNo = event.firstTask;
  let bytes =
    bytesOfJobAlone(event) + bytesOfTags(event.tags) + bytesOfNotices(event.notify) + bytesOfAudience(job.audience);
  // `map` makes lists of exactly the right length; `push` would reserve space for sixteen more elements. With a million
  // jobs of one task that is a quarter of the memory.
  job.stages = event.stages.map((spec, index) => {
    const stage = new Stage(job, index, shapeOf(state, spec));
    stage.capturedIn = state.captures;
    bytes += bytesOfShape(stage.shape);
    if (spec.tasks) bytes += openTasks(state, stage, spec.tasks, taskNo);
    taskNo += sizeOf(spec.tasks);
    if (!event.lock && stage.waiting === 0) state.unsettled.add(stage);
    return stage;
  });
  job.capturedIn = state.captures;
  state.grow(job, bytes);
  state.jobs.set(job.no, job);
  state.liveJobs += 1;
  tenant.jobs += 1;
  state.nextJob = Math.max(state.nextJob, event.job + 1);
  state.nextTask = Math.max(state.nextTask, taskNo);
  if (job.mergeKey !== undefined) state.merges.set(mergeKeyOf(event.tenant, event.door, job.mergeKey), job);
  if (event.key !== undefined) bindKey(state, event.key, event);
  state.agenda.file(job, job.deadlineAtMs, state.nowMs);
}

function addExtras(
  state: State,
  job: Job,
  { tags = [], series, notify = [], tracked }: EventOf<"job-submitted">,
): void {
  job.extras = { tags, series, notify, tracked: tracked === true, owed: [...notify.keys()] };
  state.tagged.add(job);
  if (series) state.weigh(state.series.take(job.tenant.name, job.door, series));
}

/**
 * Creates the stage's tasks, and queues them if the stage is running. Returns by how much the job's memory estimate
 * grows.
 */
export function openTasks(state: State, stage: Stage, set: TaskSet, firstTask: number): number {
  const shared = templateOf(state, set.template);
  const before = stage.template ? bytesOfTemplate(stage.template) : 0;
  stage.template = shared;
  if (set.array) return bytesOfTemplate(shared) - before + openArray(state, stage, set.array, shared, firstTask);
  stage.tasks = makeTasks(state, stage, shared, set.tasks, firstTask, 0);
  return bytesOfTemplate(shared) - before + bytesOfPlans(set.tasks) + bytesOfTaskLocks(shared, set.tasks.length);
}

function makeTasks(
  state: State,
  stage: Stage,
  template: TaskTemplate,
  plans: readonly TaskPlan[],
  firstTask: number,
  firstIndex: number,
): Task[] {
  stage.open += plans.length;
  stage.job.tenant.queued += plans.length;
  return plans.map((plan, i) => {
    const task = new Task(firstTask + i, stage, firstIndex + i, plan, template);
    task.generation = stage.generation;
    task.capturedIn = state.captures;
    state.tasks.set(task.no, task);
    return task;
  });
}

/** The same for a plan that says more than one set of tasks. */
export function openSets(
  state: State,
  stage: Stage,
  sets: readonly TaskSet[],
  decides: PlanDecides,
  firstTask: number,
): number {
  const [first, ...rest] = sets;
  let bytes = openTasks(state, stage, must(first, "first set of a plan"), firstTask);
  let taskNo = firstTask + sizeOf(first);
  const templates = rest.map(({ template }) => templateOf(state, template));
  const tasks = [...stage.tasks];
  for (const [i, set] of rest.entries()) {
    const template = templates[i] as TaskTemplate;
    if (set.array) bytes += openArray(state, stage, set.array, template, taskNo);
    else {
      for (const task of makeTasks(state, stage, template, set.tasks, taskNo, tasks.length)) tasks.push(task);
      bytes += bytesOfPlans(set.tasks) + bytesOfTaskLocks(template, set.tasks.length);
    }
    taskNo += sizeOf(set);
  }
  stage.tasks = tasks;
  stage.planned = { decides, templates };
  return bytes + bytesOfPlanned(stage.planned);
}

export function applyJobJoined(state: State, event: EventOf<"job-joined">): void {
  const job = state.job(event.job);
  beforeChange(state, job);
  if (job.audience) {
    // A subscriber without a name cannot leave, so the job always has at least one subscriber from now on.
    if (event.subscriber === undefined) {
      state.grow(job, -bytesOfAudience(job.audience));
      job.audience = undefined;
    } else {
      if (!job.audience.subscribers.has(event.subscriber)) state.grow(job, bytesOfSubscriber(event.subscriber));
      job.audience.subscribers.add(event.subscriber);
      job.audience.abandonedAtMs = 0;
    }
  }
  if (event.key !== undefined) bindKey(state, event.key, event);
  if (event.priority === job.priority) return;
  job.priority = event.priority;
  for (const stage of job.stages) {
    if (stage.planning) state.ready.reprioritize(stage.planning);
    for (const task of stage.tasks) state.ready.reprioritize(task);
    for (const array of stage.arrays ?? []) for (const task of array.live.values()) state.ready.reprioritize(task);
  }
}

export function applyJobLeft(state: State, event: EventOf<"job-left">): void {
  const job = state.job(event.job);
  beforeChange(state, job);
  const { audience } = job;
  if (!audience?.subscribers.delete(event.subscriber)) return;
  state.grow(job, -bytesOfSubscriber(event.subscriber));
  if (audience.subscribers.size > 0) return;
  audience.abandonedAtMs = event.at + audience.leaveGraceMs;
  state.agenda.file(job, audience.abandonedAtMs, state.nowMs);
}

export function applyForgotten(state: State, event: EventOf<"forgotten">): void {
  for (const no of event.jobs) {
    const job = state.job(no);
    beforeChange(state, job);
    for (const stage of job.stages) {
      beforeChange(state, stage);
      if (stage.planning) forgetTask(state, stage.planning);
      for (const task of stage.tasks) forgetTask(state, task);
      for (const array of stage.arrays ?? []) forgetArray(state, array);
    }
    state.jobs.delete(no);
    state.tagged.remove(job);
    state.agenda.drop(job);
    state.grow(job, -job.bytes);
    job.tenant.jobs -= 1;
    state.mayForget(job.tenant);
  }
}

export function forgetTask(state: State, task: Task): void {
  beforeChange(state, task);
  state.tasks.delete(task.no);
}

export const mergeKeyOf = (tenant: string, door: string, mergeKey: string): string =>
  `${tenant}\u0000${door}\u0000${mergeKey}`;

export const requestKeyOf = mergeKeyOf;

function bindKey(
  state: State,
  key: string,
  event: { readonly job: number; readonly payloadHash: string; readonly keyUntilMs?: number },
): void {
  // Move a key that is bound again to the end of the order; otherwise the keys behind it would be kept as long as it
  // is.
  forgetKey(state, key);
  const bound = { job: event.job, payloadHash: event.payloadHash, untilMs: event.keyUntilMs ?? 0 };
  state.keys.set(key, bound);
  state.weighKey(bytesOfKey(key, bound));
}

export function forgetKey(state: State, key: string): void {
  const bound = state.keys.get(key);
  if (!bound) return;
  state.keys.delete(key);
  state.weighKey(-bytesOfKey(key, bound));
}

/** Hostile callers could send a new template with every job: share few templates, and no long ones. */
const sharedMax = 1_000;
const sharedKeyMax = 2_000;

/** Most stages and templates are equal: they share one copy. */
export function templateOf(state: State, template: TaskTemplate): TaskTemplate {
  const last = state.lastTemplate;
  if (last && isSameTemplate(last, template)) return last;
  // The kind is preceded by its length and labels are joined with a character that no label may contain, so different
  // templates have different keys.
  const { kind, requires, leaseMs, attemptsMax, retryOn, backoffMs, backoffMsMax, queueMs } = template;
  const { attemptMs, effects, speculate, graceMs, stopMs, lossesMax, retries: byReason, speculation, lock } = template;
  const words = [kind.length, kind, requires.join("\u0000"), leaseMs, attemptsMax, retryOn, backoffMs, backoffMsMax];
  const rare: unknown[] = [stopMs, lossesMax, speculation?.percentile, speculation?.factorPercent, speculation?.slots];
  if (lock) rare.push(JSON.stringify(lock));
  if (byReason) rare.push(JSON.stringify(byReason));
  const key = [...words, queueMs, attemptMs, effects, speculate, graceMs, ...rare].join("|");
  return (state.lastTemplate = shared(state.templates, key, () => template));
}

export const isSameTemplate = (a: TaskTemplate, b: TaskTemplate): boolean =>
  a === b ||
  (a.kind === b.kind &&
    a.leaseMs === b.leaseMs &&
    a.attemptsMax === b.attemptsMax &&
    a.retryOn === b.retryOn &&
    a.backoffMs === b.backoffMs &&
    a.backoffMsMax === b.backoffMsMax &&
    a.queueMs === b.queueMs &&
    a.attemptMs === b.attemptMs &&
    a.effects === b.effects &&
    a.speculate === b.speculate &&
    a.graceMs === b.graceMs &&
    a.stopMs === b.stopMs &&
    a.lossesMax === b.lossesMax &&
    isSameCounts(a.retries, b.retries) &&
    isSameSpeculation(a.speculation, b.speculation) &&
    isSameLock(a.lock, b.lock) &&
    isSameList(a.requires, b.requires));

const isSameSpeculation = (a: Speculation | undefined, b: Speculation | undefined): boolean =>
  a === b ||
  (a !== undefined &&
    b !== undefined &&
    a.percentile === b.percentile &&
    a.factorPercent === b.factorPercent &&
    a.slots === b.slots);

function isSameCounts(a: FailureCounts | undefined, b: FailureCounts | undefined): boolean {
  if (a === b) return true;
  if (!a || !b) return false;
  const reasons = Object.keys(a) as (keyof FailureCounts)[];
  return reasons.length === Object.keys(b).length && reasons.every((reason) => a[reason] === b[reason]);
}

const isSameLock = (a: LockSpec | undefined, b: LockSpec | undefined): boolean =>
  a === b ||
  (a !== undefined &&
    b !== undefined &&
    a.name === b.name &&
    a.limit === b.limit &&
    a.queueMax === b.queueMax &&
    a.cancelInProgress === b.cancelInProgress);

/** Templates that say only what the first release knew. */
export const isPlainTemplate = ({ stopMs, lossesMax, retries, speculation, lock }: TaskTemplate): boolean =>
  [stopMs, lossesMax, retries, speculation, lock].every((one) => one === undefined);

const isSameShape = (a: StageShape, b: StageSpec): boolean =>
  a.plan === undefined &&
  a.lock === undefined &&
  b.plan === undefined &&
  b.lock === undefined &&
  a.name === b.name &&
  a.after === b.after &&
  a.failFast === b.failFast &&
  a.mayFail === b.mayFail &&
  a.parallelMax === b.parallelMax &&
  a.manifest === (b.manifest ?? false) &&
  isSameList(a.needs, b.needs);

export function isSameList<T>(a: readonly T[], b: readonly T[]): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i += 1) if (a[i] !== b[i]) return false;
  return true;
}

export function shapeOf(state: State, spec: StageSpec): StageShape {
  const last = state.lastShape;
  if (last && isSameShape(last, spec)) return last;
  const { name, needs, after, plan, failFast, mayFail, parallelMax, lock, manifest = false } = spec;
  const extras = plan || lock || manifest ? JSON.stringify([plan, lock, manifest]) : "";
  const key = `${name}|${needs.join()}|${after}|${failFast}|${mayFail}|${parallelMax}|${extras}`;
  return (state.lastShape = shared(state.shapes, key, () => ({
    name,
    needs,
    after,
    plan,
    planTemplate: plan && {
      kind: plan.kind,
      requires: plan.requires,
      leaseMs: plan.leaseMs,
      attemptsMax: plan.attemptsMax,
      retryOn: "infrastructure",
      backoffMs: 1_000,
      backoffMsMax: 30_000,
      queueMs: plan.deadlineMs,
      attemptMs: plan.deadlineMs,
      effects: "pure",
      speculate: false,
      graceMs: 0,
    },
    failFast,
    mayFail,
    parallelMax,
    lock,
    manifest,
  })));
}

function shared<T>(map: Map<string, T>, key: string, make: () => T): T {
  if (key.length > sharedKeyMax) return make();
  let value = map.get(key);
  if (value === undefined) {
    if (map.size >= sharedMax) map.clear();
    value = make();
    map.set(key, value);
  }
  return value;
}
