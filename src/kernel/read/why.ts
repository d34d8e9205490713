/** "Why is this not running?", answered from the state: what it waits for, and how far away that is. */
import type { OfTenant } from "#kernel/model/command.ts";
import type { Job, KeptCheckpoint, Stage, Task } from "#kernel/model/entities.ts";
import { isOver, lockKey, type LockHolder, lockSpecOf, placeIn, taskHolder } from "#kernel/ready/locks.ts";
import { sparedIn } from "#kernel/apply/cancelling.ts";
import { isJobOver, isStageOver, isTaskOver, slotsOf } from "#kernel/apply/moves.ts";
import type { CheckpointView, Why, WhyBesides, WhyOf, WhyReason } from "./query.ts";
import { isOfLane, takes } from "#kernel/ready/lanes.ts";
import { wantedBy } from "#kernel/ready/ready.ts";
import { goesBefore } from "#kernel/ready/ready-queue.ts";
import type { State } from "#kernel/model/state.ts";
import { parallelMaxOf } from "#kernel/model/stage-rules.ts";
import type { TaskArray } from "#kernel/model/task-array.ts";

const linesMax = 20;
const lookMax = 100_000;
const pendingShown = 5;

/** `of.tenant` is the caller's tenant, if it has one: the answer names no executors of other tenants. */
export function whyOf(state: State, job: Job, nowMs: number, of: WhyOf & OfTenant = {}): Why[] {
  const lines: Why[] = [];
  for (const stage of stagesIn(state, job, of)) {
    if (lines.length >= linesMax) break;
    const line = (task: Task | undefined, because: WhyReason): void => {
      const { index } = stage;
      const phase = task?.phase ?? stage.phase;
      const key = task?.plan.key ?? stage.shape.name;
      lines.push({ task: task?.no ?? 0, stage: index, key, phase, because, ...besides(stage, task, nowMs) });
    };
    if (isStageOver(stage)) continue;
    if (stage.phase === "BLOCKED") {
      line(undefined, whyBlocked(state, stage));
      continue;
    }
    if (stage.phase === "READY" && stage.planned) {
      line(undefined, whyLocked(state, { job, stage }));
      continue;
    }
    if (stage.manifest?.no && of.task === undefined) {
      line(undefined, { kind: "publishing", results: stage.done, forMs: nowMs - stage.manifest.dueAtMs });
      continue;
    }
    for (const array of stage.arrays ?? []) {
      const task = of.task === undefined ? undefined : unbornIn(array, of.task);
      if (task || (of.task === undefined && array.ended < array.plan.count)) line(task, whyArray(array, task));
    }
    for (const task of openIn(stage)) {
      if (lines.length >= linesMax) break;
      if (of.task !== undefined && task.no !== of.task) continue;
      if (!isTaskOver(task.phase)) line(task, whyTask(state, task, nowMs, of));
    }
  }
  // The remaining reasons concern the job as a whole.
  if (of.stage !== undefined || of.task !== undefined) return lines;
  const { name: key, phase } = job;
  if (job.graceUntilMs > 0 && !isJobOver(job)) {
    const stages = sparedIn(job).map(({ shape }) => shape.name);
    const forMs = Math.max(0, job.graceUntilMs - nowMs);
    lines.unshift({ task: 0, stage: 0, key, phase, because: { kind: "cleaning-up", stages, forMs } });
  }
  if (state.telling.has(job)) {
    const because: WhyReason = { kind: "notices", notices: job.extras?.owed.length ?? 0, forMs: nowMs - job.endedAtMs };
    lines.push({ task: 0, stage: 0, key, phase, because });
  }
  if (lines.length === 0 && isJobOver(job))
    lines.push({ task: 0, stage: 0, key, phase, because: { kind: "ended", phase } });
  if (lines.length === 0 && job.outbox)
    lines.push({ task: 0, stage: 0, key, phase, because: whyOpen(job.outbox, nowMs) });
  return lines;
}

function besides(stage: Stage, task: Task | undefined, nowMs: number): WhyBesides {
  const pending = pendingOf(stage, task);
  return {
    ...(task?.checkpoint && { checkpoint: checkpointView(task.checkpoint, nowMs) }),
    ...(task?.failures && { failures: task.failures }),
    ...(pending.length > 0 && { pending: pending.slice(-pendingShown) }),
    ...(task?.claim && task.second && { second: task.second.executor.id }),
  };
}

export const checkpointView = ({ token, atMs }: KeptCheckpoint, nowMs: number): CheckpointView => ({
  token,
  agoMs: nowMs - atMs,
});

/** A planner gets the signals with its claim, an executor with its renewals; before that all of them are pending. */
function pendingOf({ gate, planning }: Stage, task: Task | undefined): readonly string[] {
  if (!gate) return [];
  const received = task && task === planning ? gate.seen : (task?.claim?.heard ?? 0);
  return gate.signals.slice(received).map(({ name }) => name);
}

/** The array's task with this number, if it is not queued yet. */
function unbornIn(array: TaskArray, no: number): Task | undefined {
  const place = no - array.no;
  return array.has(no) && array.unborn > 0 && place >= array.next ? array.view(place) : undefined;
}

function whyArray(array: TaskArray, task: Task | undefined): WhyReason {
  const { plan, ended, queued, live, next } = array;
  let running = 0;
  for (const one of live.values()) if (one.claim) running += 1;
  const ahead = task ? queued + task.index - next : 0;
  return { kind: "array", count: plan.count, ended, running, queued, ahead };
}

function* openIn(stage: Stage): Generator<Task, undefined> {
  if (stage.planning && stage.phase === "READY") yield stage.planning;
  else yield* stage.tasks;
  for (const { live } of stage.arrays ?? []) yield* live.values();
  return undefined;
}

function stagesIn(state: State, job: Job, { stage, task }: WhyOf): readonly Stage[] {
  if (task !== undefined) {
    const own = state.findTask(task)?.stage;
    return own?.job === job ? [own] : [];
  }
  return stage === undefined ? job.stages : job.stages.filter(({ index }) => index === stage);
}

function whyOpen(outbox: NonNullable<Job["outbox"]>, nowMs: number): WhyReason {
  const sinceMs = outbox.values().reduce((least, { committedAtMs }) => Math.min(least, committedAtMs), nowMs);
  return { kind: "publishing", results: outbox.size, forMs: nowMs - sinceMs };
}

function whyBlocked(state: State, stage: Stage): WhyReason {
  const { job } = stage;
  const holder = job.phase === "WAITING" ? { job, stage: undefined } : { job, stage };
  if (stage.waiting > 0 && job.phase !== "WAITING") {
    const needs = stage.shape.needs.map((need) => job.stages[need] as Stage).filter((need) => !isStageOver(need));
    return { kind: "needs", stages: needs.map((need) => need.shape.name) };
  }
  return whyLocked(state, holder);
}

function whyLocked(state: State, holder: LockHolder): WhyReason {
  const { job } = holder;
  const spec = lockSpecOf(holder);
  const lock = spec && state.locks.byKey.get(lockKey(job.tenant, spec.name));
  const heldBy = (lock?.holders ?? []).filter((one) => !isOver(one)).map((one) => one.job.no);
  const ahead = Math.max(0, lock ? placeIn(lock.queue, holder) : 0);
  return { kind: "lock", name: spec?.name ?? "", heldBy, ahead };
}

function whyTask(state: State, task: Task, nowMs: number, asker: OfTenant): WhyReason {
  const { stage } = task;
  const { tenant } = stage.job;
  if (task.claim) return { kind: "running", executor: task.claim.executor.id };
  if (task.phase === "WAITING")
    return { kind: "signal", names: stage.gate?.waitsFor ?? [], forMs: Math.max(0, task.dueAtMs - nowMs) };
  if (task.phase === "RETRY_PENDING") {
    const lastFailure = task.last ? `${task.last.reason}: ${task.last.message}` : "";
    return { kind: "back-off", forMs: Math.max(0, task.dueAtMs - nowMs), lastFailure };
  }
  const lock = task.template.lock && state.locks.tasks.get(task.no);
  if (!task.list && lock && lock.state !== "held") return whyLocked(state, taskHolder(lock));
  if (!task.list) return { kind: "parallel-max", limit: parallelMaxOf(stage) };
  const fit = whoFits(state, task, nowMs, asker);
  if (fit.able === 0)
    return fit.drained.length > 0
      ? { kind: "drained", executors: fit.drained.slice(0, 10) }
      : { kind: "no-executor", nearest: fit.nearest, missing: fit.missing };
  if (tenant.parked) {
    const slots = slotsOf(state, tenant);
    return { kind: "quota", running: tenant.running, runningMax: Number.isFinite(slots) ? slots : 0 };
  }
  return {
    kind: "queued",
    position: positionOf(task, task.list),
    executors: fit.able,
    tenantsAhead: tenantsAhead(state, task),
  };
}

function whoFits(
  state: State,
  task: Task,
  nowMs: number,
  asker: OfTenant,
): { able: number; drained: string[]; nearest: string | undefined; missing: readonly string[] } {
  const wanted = wantedBy(task);
  const { requires } = wanted;
  let able = 0;
  const drained: string[] = [];
  let nearest: string | undefined;
  let missing: readonly string[] = requires;
  for (const executor of state.executors.values()) {
    if (!executor.offers) continue;
    const offers = new Set(executor.offers);
    if (!isOfLane(offers, wanted)) continue;
    const isServed = executor.tenant === undefined || executor.tenant === task.stage.job.tenant.name;
    if (isServed && takes(offers, wanted)) {
      if (executor.drained && executor.drained.untilMs > nowMs) drained.push(executor.id);
      else able += 1;
      continue;
    }
    if (!isServed && asker.tenant !== undefined) continue;
    const lacks = requires.filter((label) => !offers.has(label));
    if (nearest === undefined || lacks.length < missing.length) {
      nearest = executor.id;
      missing = lacks.length === 0 ? [`tenant=${task.stage.job.tenant.name}`] : lacks;
    }
  }
  return { able, drained, nearest, missing };
}

/** How many of the tenant's tasks of the class are ahead. */
function positionOf(task: Task, list: NonNullable<Task["list"]>): number {
  let ahead = 0;
  for (const other of list.queue.lists) if (other.priority > list.priority) ahead += other.size;
  let looked = 0;
  for (let other = task.prev; other && looked < lookMax; other = other.prev) looked += 1;
  return ahead + looked;
}

function tenantsAhead(state: State, task: Task): number {
  const mine = task.stage.job.tenant;
  let ahead = 0;
  for (const tenant of state.tenants.values())
    if (tenant !== mine && tenant.ready > 0 && !tenant.parked && goesBefore(tenant, mine)) ahead += 1;
  return ahead;
}
