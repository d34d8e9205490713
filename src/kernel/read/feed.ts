/**
 * What the event feed says of an event: items that name their job, its tenant and tags, so that a reader needs nothing
 * else. Taken from the state right after the event was applied, by the shard's owner and by nodes that replay the
 * log: both get the same items.
 */
import { formatJob, formatTask } from "#base/ids.ts";
import type { Job, Stage, Task } from "#kernel/model/entities.ts";
import type { Event, EventOf } from "#kernel/model/event.ts";
import type { State } from "#kernel/model/state.ts";

export const feedKinds = ["job", "stage", "task", "step"] as const;
export type FeedKind = (typeof feedKinds)[number];

/** One transition. The fields are documented for users in docs/reference/events.md. */
export type FeedItem = {
  /** Shard, batch, event and item in base 36: the same transition always has the same id. */
  readonly id: string;
  readonly kind: FeedKind;
  readonly change: string;
  /** Kernel time in milliseconds. */
  readonly at: number;
  readonly tenant: string;
  readonly job: string;
  readonly door: string;
  readonly name: string;
  readonly tags?: Readonly<Record<string, string>>;
  /** Of the series that numbered the job. */
  readonly number?: number;
  /** Of the job, stage or task, after the change; a step's status. */
  readonly phase: string;
  readonly reason?: string;
  readonly stage?: StageFacts;
  readonly task?: TaskFacts;
  readonly step?: { readonly index: number; readonly name: string };
};

export type StageFacts = {
  readonly index: number;
  readonly name: string;
  readonly generation: number;
  /** How many tasks it has, and how many of them have succeeded and failed. */
  readonly tasks: number;
  readonly done: number;
  readonly failed: number;
  /** What a plan waits for, or the name of a signal that arrived. */
  readonly signal?: string;
};

export type TaskFacts = {
  readonly id: string;
  readonly key: string;
  readonly generation: number;
  /** It decides the stage's tasks. */
  readonly planning?: true;
  /** The token of the claim, which grows with every grant in the shard. */
  readonly attempt?: number;
  readonly executor?: string;
  /** How an attempt ended, and what happens to the task next. */
  readonly outcome?: string;
  readonly next?: string;
};

/** Where the event is in the log. */
export type FeedPlace = { readonly seq: number; readonly index: number };

const reasonLengthMax = 1_000;

/** Appends the items of one event, which was just applied. */
export function feedOf(state: State, event: Event, place: FeedPlace, items: FeedItem[]): void {
  const out: Out = { state, place, items, first: items.length };
  switch (event.kind) {
    case "job-submitted":
      return addJob(out, state.jobs.get(event.job), "submitted", event.at);
    case "job-cancelling":
      return addJob(out, state.jobs.get(event.job), "cancelling", event.at);
    case "job-ended":
      return addJob(out, state.jobs.get(event.job), "ended", event.at);
    case "lock-queued":
    case "lock-granted":
      if (event.stage < 0) return addJob(out, state.jobs.get(event.job), event.kind, event.at);
      return addStage(out, stageOf(state, event), event.kind, event.at);
    case "stage-ready":
    case "stage-planned":
      return began(out, event);
    case "stage-reopened":
      return addStage(out, stageOf(state, event), "reopened", event.at);
    case "stage-cancelling":
      return addStage(out, stageOf(state, event), "cancelling", event.at);
    case "stage-ended":
      return stageEnded(out, event);
    case "signalled":
      return addStage(out, stageOf(state, event), "signalled", event.at, { signal: event.name });
    case "rest-failed": {
      const stage = state.findTask(event.array)?.stage;
      return addStage(out, stage, "rest-failed", event.at, {}, event.reason);
    }
    default:
      return ofTask(out, event);
  }
}

type Out = {
  readonly state: State;
  readonly place: FeedPlace;
  readonly items: FeedItem[];
  readonly first: number;
};

const stageOf = (state: State, { job, stage }: { readonly job: number; readonly stage: number }): Stage | undefined =>
  state.jobs.get(job)?.stages[stage];

/** Tasks of arrays are not listed: there may be a million, and the stage says how many. */
function began(out: Out, event: EventOf<"stage-ready"> | EventOf<"stage-planned">): void {
  const stage = stageOf(out.state, event);
  addStage(out, stage, event.kind === "stage-ready" ? "ready" : "planned", event.at);
  if (!stage) return;
  if (event.kind === "stage-ready" && stage.planning) return addTask(out, stage.planning, "ready", event.at);
  if (event.kind === "stage-planned" && stage.planning) addTask(out, stage.planning, "committed", event.at);
  for (const task of stage.tasks) addTask(out, task, "ready", event.at);
}

/** Tasks that were cancelled with their stage or job have no event of their own. */
function stageEnded(out: Out, event: EventOf<"stage-ended">): void {
  const stage = stageOf(out.state, event);
  if (stage && stage.done + stage.failed < stage.size)
    for (const task of stage.tasks) if (task.phase === "CANCELLED") addTask(out, task, "cancelled", event.at);
  addStage(out, stage, "ended", event.at);
}

function ofTask(out: Out, event: Event): void {
  switch (event.kind) {
    case "claimed":
      return addTask(out, find(out, event), event.started ? "started" : "claimed", event.at, {
        attempt: event.token,
        executor: event.executor,
      });
    case "started":
    case "committed":
    case "checkpointed":
      return addTask(out, find(out, event), event.kind, event.at, { attempt: event.token });
    case "attempt-ended": {
      const { token: attempt, outcome, next, reason, message } = event;
      const why = message === "" ? reason : `${reason}: ${message}`;
      return addTask(out, find(out, event), "attempt-ended", event.at, { attempt, outcome, next: next.do }, why);
    }
    case "plan-waiting":
      return addTask(out, find(out, event), "waiting", event.at, { attempt: event.token });
    case "plan-closed":
      return addTask(out, find(out, event), "committed", event.at, { attempt: event.token });
    case "plan-woken":
      return addTask(out, find(out, event), "ready", event.at);
    case "requeued":
    case "reused":
    case "speculated":
      return addTask(out, find(out, event), event.kind === "requeued" ? "ready" : event.kind, event.at);
    case "task-failed":
      return addTask(out, find(out, event), "failed", event.at, {}, event.reason);
    case "invalidated":
      return addTask(out, find(out, event), "invalidated", event.at, {}, event.reason);
    case "reported":
      return addSteps(out, event);
    default:
  }
}

/** The task of the event; one that left memory with the event is still known by its claim. */
function find({ state }: Out, { task }: { readonly task: number }): Task | undefined {
  const ended = state.endedClaim?.task;
  return ended?.no === task ? ended : state.findTask(task);
}

function addJob(out: Out, job: Job | undefined, change: string, at: number): void {
  if (!job) return;
  out.items.push({ ...about(out, job), kind: "job", change, at, phase: job.phase, ...because(job.reason) });
}

function addStage(
  out: Out,
  stage: Stage | undefined,
  change: string,
  at: number,
  more: Partial<StageFacts> = {},
  reason = stage?.reason ?? "",
): void {
  if (!stage) return;
  const { job, phase } = stage;
  const facts = { ...stageFacts(stage), ...more };
  out.items.push({ ...about(out, job), kind: "stage", change, at, phase, ...because(reason), stage: facts });
}

function addTask(
  out: Out,
  task: Task | undefined,
  change: string,
  at: number,
  more: Partial<TaskFacts> = {},
  reason = "",
): void {
  if (!task) return;
  const { stage, phase } = task;
  const facts = { stage: stageFacts(stage), task: { ...taskFacts(out.state, task), ...more } };
  out.items.push({ ...about(out, stage.job), kind: "task", change, at, phase, ...because(reason), ...facts });
}

function addSteps(out: Out, event: EventOf<"reported">): void {
  const task = find(out, event);
  if (!task) return;
  const facts = { stage: stageFacts(task.stage), task: { ...taskFacts(out.state, task), attempt: event.token } };
  for (const { step, name, status } of event.steps)
    out.items.push({
      ...about(out, task.stage.job),
      kind: "step",
      change: "reported",
      at: event.at,
      phase: status,
      ...facts,
      step: { index: step, name },
    });
}

const because = (reason: string): { readonly reason?: string } =>
  reason === "" ? {} : { reason: reason.slice(0, reasonLengthMax) };

function about({ state, place, items, first }: Out, job: Job) {
  const { tags, series } = job.extras ?? {};
  return {
    id: itemId(state.shard, place, items.length - first),
    tenant: job.tenant.name,
    job: formatJob(state.shard, job.no),
    door: job.door,
    name: job.name,
    ...(tags && tags.length > 0 && { tags: Object.fromEntries(tags.map(({ name, value }) => [name, value])) }),
    ...(series && { number: series.number }),
  };
}

const itemId = (shard: number, { seq, index }: FeedPlace, n: number): string =>
  `${shard.toString(36)}-${seq.toString(36)}-${index.toString(36)}${n === 0 ? "" : `-${n.toString(36)}`}`;

const stageFacts = (stage: Stage): StageFacts => ({
  index: stage.index,
  name: stage.shape.name,
  generation: stage.generation,
  tasks: stage.size,
  done: stage.done,
  failed: stage.failed,
});

const taskFacts = (state: State, task: Task): TaskFacts => ({
  id: formatTask(state.shard, task.no),
  key: task.plan.key,
  generation: task.generation,
  ...(task === task.stage.planning && { planning: true as const }),
});
