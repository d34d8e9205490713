/**
 * An array of tasks in memory. Only tasks that are queued, claimed or waiting for another attempt exist as objects; the
 * ones before them are a few bytes in a page, the ones after them a counter. So a million tasks cost what is running,
 * and their results until those are in the stage's manifest.
 */
import { hash32 } from "#base/random.ts";
import { type Stage, Task } from "./entities.ts";
import type { ArrayPlan, FailReason, Result, TaskPhase, TaskTemplate } from "./model.ts";
import { arrayKey } from "./task-set.ts";

/** How many tasks share a page. */
export const pageTasks = 1_024;
/** How many failures of an array are kept with their messages, and how many get rows in the history. */
export const failuresKept = 100;
export const troubleRowsMax = 1_000;

export type EndPhase = "SUCCEEDED" | "FAILED" | "CANCELLED";

/** Kept in snapshots: append new entries at the end only. */
export const endPhases: readonly (EndPhase | undefined)[] = [undefined, "SUCCEEDED", "FAILED", "CANCELLED"];

/** How the tasks at 1,024 neighbouring places ended. */
export class EndsPage {
  readonly array: TaskArray;
  readonly number: number;
  /** Index into `endPhases`; 0 for tasks that have not ended. */
  readonly phases: Uint8Array;
  readonly attempts: Uint8Array;
  readonly generations: Uint32Array;
  /** The token of the result, or of the last attempt. */
  readonly tokens: Float64Array;
  /** A hash of the result, or of the executor of the last attempt: a repeated command is recognised by it. */
  readonly marks: Uint32Array;
  /** By place; undefined when all of them are in the stage's manifest. */
  results: (Result | undefined)[] | undefined;
  capturedIn = 0;

  constructor(array: TaskArray, number: number) {
    this.array = array;
    this.number = number;
    const size = Math.min(pageTasks, array.plan.count - number * pageTasks);
    this.phases = new Uint8Array(size);
    this.attempts = new Uint8Array(size);
    this.generations = new Uint32Array(size);
    this.tokens = new Float64Array(size);
    this.marks = new Uint32Array(size);
  }

  get size(): number {
    return this.phases.length;
  }

  put(slot: number, task: Task): void {
    this.phases[slot] = endPhases.indexOf(task.phase as EndPhase);
    this.attempts[slot] = task.attempts;
    this.generations[slot] = task.generation;
    this.tokens[slot] = task.result ? task.resultToken : (task.last?.token ?? 0);
    this.marks[slot] = task.result ? markOf(task.result) : hash32(task.last?.executor ?? "");
    if (task.result) (this.results ??= Array.from({ length: this.size }))[slot] = task.result;
  }

  clear(slot: number): void {
    this.phases[slot] = 0;
    if (this.results) this.results[slot] = undefined;
  }
}

export const markOf = ({ payload, digests, publish = "" }: Result): number =>
  hash32(`${payload}|${digests.join()}|${publish}`);

export type ArrayFailure = { readonly place: number; readonly reason: FailReason; readonly message: string };

export class TaskArray {
  /** The number of its first task: the others follow. */
  readonly no: number;
  readonly stage: Stage;
  readonly plan: ArrayPlan;
  readonly template: TaskTemplate;
  /** The first place that was never queued: the tasks from here on do not exist yet. */
  next = 0;
  /** How the tasks from `next` on ended, if they ended without having been queued. */
  rest: "FAILED" | "CANCELLED" | undefined;
  restReason = "";
  /** By place. */
  readonly live = new Map<number, Task>();
  /** How many of them are in the ready queue. */
  queued = 0;
  /** Places of tasks that run again but are held back by the stage's parallelMax. */
  readonly held: number[] = [];
  readonly pages: (EndsPage | undefined)[] = [];
  readonly failures: ArrayFailure[] = [];
  /** How many of its tasks have ended. */
  ended = 0;
  /** Attempts that ended badly. */
  troubles = 0;
  /** Estimated memory of the results in its pages. */
  resultBytes = 0;

  constructor(no: number, stage: Stage, plan: ArrayPlan, template: TaskTemplate) {
    this.no = no;
    this.stage = stage;
    this.plan = plan;
    this.template = template;
  }

  has(no: number): boolean {
    return no >= this.no && no < this.no + this.plan.count;
  }

  /** How many tasks do not exist yet, and have not ended. */
  get unborn(): number {
    return this.rest ? 0 : this.plan.count - this.next;
  }

  pageOf(place: number): EndsPage | undefined {
    return this.pages[Math.floor(place / pageTasks)];
  }

  phaseAt(place: number): TaskPhase {
    const live = this.live.get(place);
    if (live) return live.phase;
    return endPhases[this.pageOf(place)?.phases[place % pageTasks] ?? 0] ?? this.rest ?? "READY";
  }

  markAt(place: number): number | undefined {
    return this.pageOf(place)?.marks[place % pageTasks];
  }

  resultAt(place: number): Result | undefined {
    return this.live.get(place)?.result ?? this.pageOf(place)?.results?.[place % pageTasks];
  }

  /** A new object for the task; nothing refers to it yet. */
  make(place: number): Task {
    const task = new Task(this.no + place, this.stage, place, this.#planAt(place), this.template);
    task.array = this;
    task.generation = this.stage.generation;
    return task;
  }

  /** The task as it ended, or as it will begin: to look at, not to change. */
  view(place: number): Task {
    const task = this.make(place);
    const page = this.pageOf(place);
    const slot = place % pageTasks;
    const phase = endPhases[page?.phases[slot] ?? 0];
    if (!page || !phase) {
      if (!this.rest) return task;
      task.phase = this.rest;
      if (this.rest === "FAILED") task.last = endOf(0, "FAILED", "timed-out", this.restReason);
      return task;
    }
    task.phase = phase;
    task.attempts = page.attempts[slot] ?? 0;
    task.generation = page.generations[slot] ?? 1;
    const token = page.tokens[slot] ?? 0;
    if (phase === "SUCCEEDED") {
      task.result = page.results?.[slot];
      task.resultToken = token;
      return task;
    }
    const failure = this.failures.find((one) => one.place === place);
    task.last = endOf(token, phase, failure?.reason ?? "cancelled", failure?.message ?? "");
    return task;
  }

  #planAt(place: number): Task["plan"] {
    return { key: arrayKey(this.plan, place), spec: this.plan.spec };
  }
}

/** Of the executor only a hash is kept: see `marks`. */
const endOf = (
  token: number,
  phase: "FAILED" | "CANCELLED",
  reason: FailReason,
  message: string,
): NonNullable<Task["last"]> => ({
  token,
  executor: "",
  outcome: phase === "FAILED" ? "failed" : "cancelled",
  reason,
  message,
  retryInMs: undefined,
  result: undefined,
});
