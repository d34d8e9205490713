/**
 * A snapshot of a shard that goes on working: consistent as of the moment it began, produced in small chunks. A thing
 * that is about to change and is not written yet is written first (copy-on-write), so a snapshot costs one pass over
 * the state, in slices, and no copy of it.
 *
 * Rows are small JSON arrays, a parent always before its children; restore.ts reads them.
 */
import { type Claim, Job, type Publication, Stage, type StageShape, type Task } from "#kernel/model/entities.ts";
import type { TaskTemplate } from "#kernel/model/model.ts";
import type { Lock, LockHolder } from "#kernel/ready/locks.ts";
import type { State } from "#kernel/model/state.ts";
import { EndsPage, type TaskArray } from "#kernel/model/task-array.ts";
import { arrayRow, pageRow } from "./array-rows.ts";

export type Capture = {
  /** The next chunk, of about this many characters; undefined when everything has been written. */
  next(sizeMin: number): string | undefined;
  /** Called before a thing changes. */
  keep(thing: Task | Stage | Job | EndsPage): void;
  abort(): void;
};

export const snapshotVersion = 1;

export function beginCapture(state: State): Capture {
  state.captures += 1;
  const capture = new Capturing(state);
  state.capture = capture;
  return capture;
}

class Capturing implements Capture {
  readonly #state: State;
  readonly #id: number;
  #rows: string[] = [];
  #size = 0;
  readonly #things: Iterator<Job>;
  #walk: Iterator<void> | undefined;
  readonly #keys: Iterator<[string, { job: number; payloadHash: string; untilMs: number }]>;
  #keysLeft: number;
  readonly #shapes = new Map<StageShape, number>();
  readonly #templates = new Map<TaskTemplate, number>();
  #done = false;

  constructor(state: State) {
    this.#state = state;
    this.#id = state.captures;
    this.#things = state.jobs.values();
    this.#keys = state.keys.entries();
    this.#keysLeft = state.keys.size;
    this.#header();
  }

  next(sizeMin: number): string | undefined {
    if (this.#done) return undefined;
    while (this.#size < sizeMin && this.#advance());
    if (this.#rows.length === 0) {
      this.#done = true;
      this.abort();
      return undefined;
    }
    const chunk = `[${this.#rows.join(",\n")}]`;
    this.#rows = [];
    this.#size = 0;
    return chunk;
  }

  keep(thing: Task | Stage | Job | EndsPage): void {
    if (thing.capturedIn === this.#id) return;
    thing.capturedIn = this.#id;
    if (thing instanceof Job) this.#job(thing);
    else if (thing instanceof EndsPage) {
      this.keep(thing.array.stage);
      this.#row(pageRow(thing));
    } else if (thing instanceof Stage) {
      this.keep(thing.job);
      this.#stage(thing);
    } else {
      this.keep(thing.stage);
      this.#task(thing);
    }
  }

  abort(): void {
    if (this.#state.capture === this) this.#state.capture = undefined;
  }

  /** Writes one more thing; false when none is left. */
  #advance(): boolean {
    if (this.#walk) {
      if (!this.#walk.next().done) return true;
      this.#walk = undefined;
    }
    const next = this.#things.next();
    if (!next.done) {
      this.#walk = this.#walkJob(next.value);
      return true;
    }
    return this.#key();
  }

  *#walkJob(job: Job): Generator<void> {
    // A job created after the snapshot began is not part of it, and neither is anything in the job.
    if (job.capturedIn === this.#id && job.stages.every((stage) => stage.capturedIn === this.#id)) {
      // The job may have been written early because it changed: then its tasks are still to be written.
      const isKept = (task: Task | EndsPage | undefined): boolean => task === undefined || task.capturedIn === this.#id;
      const isArrayKept = ({ live, pages }: TaskArray): boolean => live.values().every(isKept) && pages.every(isKept);
      const areArraysKept = ({ arrays }: Stage): boolean => arrays === undefined || arrays.every(isArrayKept);
      if (job.stages.every((stage) => isKept(stage.planning) && stage.tasks.every(isKept) && areArraysKept(stage)))
        return;
    }
    this.keep(job);
    for (const stage of job.stages) {
      this.keep(stage);
      if (stage.planning) this.keep(stage.planning);
      for (let i = 0; i < stage.tasks.length; i += 1) {
        this.keep(stage.tasks[i] as Task);
        if (i % 64 === 63) yield;
      }
      for (const array of stage.arrays ?? []) yield* this.#walkArray(array);
    }
  }

  *#walkArray({ pages, live }: TaskArray): Generator<void> {
    for (const page of pages) {
      if (page) this.keep(page);
      yield;
    }
    let seen = 0;
    for (const task of live.values()) {
      this.keep(task);
      seen += 1;
      if (seen % 64 === 0) yield;
    }
  }

  #key(): boolean {
    if (this.#keysLeft === 0) return false;
    this.#keysLeft -= 1;
    const next = this.#keys.next();
    if (next.done) return false;
    const [key, { job, payloadHash, untilMs }] = next.value;
    this.#row(["K", key, job, payloadHash, untilMs]);
    return true;
  }

  #row(row: readonly unknown[]): void {
    const text = JSON.stringify(row);
    this.#rows.push(text);
    this.#size += text.length;
  }

  #header(): void {
    const { shard, nowMs, epoch, nextJob, nextTask, nextToken, keysElsewhereUntilMs, ready } = this.#state;
    const facts = { shard, nowMs, epoch, nextJob, nextTask, nextToken, keysElsewhereUntilMs };
    this.#row(["H", snapshotVersion, { ...facts, virtual: ready.virtual, nextOrder: ready.nextOrder }]);
    for (const {
      name,
      weight,
      runningMax,
      queuedMax,
      home,
      virtual,
      lent,
      slice,
      sliceNo,
    } of this.#state.tenants.values())
      this.#row(["N", name, weight, runningMax, queuedMax, home, virtual, [...lent], slice, sliceNo]);
    for (const { id, drained, failures, nonce, granted, claims } of this.#state.executors.values()) {
      // Void claims outlive the task they were for; the others are written with their tasks.
      const silent = [...claims.values()].filter((claim) => claim.void);
      if (claims.size === 0 && !drained && failures === 0) continue;
      this.#row(["X", id, drained ?? null, failures, nonce, granted, silent.map(silentRow)]);
    }
    for (const lock of this.#state.locks.byKey.values()) this.#row(lockRow(lock));
    for (const [tenant, numbers] of this.#state.series.all) this.#row(["Q", tenant, [...numbers]]);
  }

  #job(job: Job): void {
    const { no, tenant, door, name, phase, reason, priority, spec, submittedAtMs, deadlineAtMs, endedAtMs } = job;
    const { mergeKey, lock, audience, reuse, trace, extras, cancelled, outbox, bytes, stagesOpen, cancelGraceMs } = job;
    const fixed = [no, tenant.name, door, name, spec, submittedAtMs, deadlineAtMs, job.stages.length];
    const rare =
      mergeKey === undefined &&
      !lock &&
      !audience &&
      !reuse &&
      trace === undefined &&
      !extras &&
      !cancelled &&
      !outbox &&
      cancelGraceMs === undefined
        ? null
        : {
            mergeKey,
            lock,
            audience: audience && { ...audience, subscribers: [...audience.subscribers] },
            reuse,
            trace,
            ...extras,
            cancelled,
            cancelGraceMs,
            ...(job.graceUntilMs > 0 && { graceUntilMs: job.graceUntilMs }),
            ...(outbox && { orphans: orphansOf(this.#state, job).map(orphanRow) }),
          };
    this.#row(["J", ...fixed, phase, reason, priority, endedAtMs, bytes, stagesOpen, rare]);
  }

  #stage(stage: Stage): void {
    const { job, index, shape, phase, reason, generation, waiting, template, tasks, open, done, failed } = stage;
    const { active, nextHeld, cancelled, gate, kept, runMsSum, runs, lockState, manifest, arrays } = stage;
    const { planned, lock } = stage;
    const rare =
      cancelled || gate || kept || lockState !== "none" || planned || stage.pace || manifest
        ? {
            cancelled,
            gate,
            kept: kept && [...kept],
            lockState,
            pace: stage.pace,
            ...(planned && {
              decides: planned.decides,
              templates: planned.templates.map((one) => this.#template(one)),
            }),
            ...(lock !== shape.lock && { lock }),
            ...(manifest && { manifest }),
          }
        : null;
    const counts = [waiting, tasks.length, open, done, failed, active, nextHeld, runMsSum, runs];
    const kinds = [this.#shape(shape), template ? this.#template(template) : -1];
    this.#row(["S", job.no, index, ...kinds, phase, reason, generation, ...counts, stage.startedAtMs, rare]);
    for (const [at, array] of (arrays ?? []).entries())
      this.#row(["A", job.no, index, at, this.#template(array.template), ...arrayRow(array)]);
  }

  #task(task: Task): void {
    const { no, stage, index, plan, template, phase, generation, attempts, claim, second, result, resultToken } = task;
    const { last, steps, speculated, queuedAtMs, dueAtMs, order, list, outOfMemory, array, checkpoint } = task;
    const waiting = result && this.#state.outbox.get(no);
    const isWanting = template.lock !== undefined && this.#state.locks.tasks.get(no)?.state === "wanted";
    const rare =
      claim || result || last || steps || speculated || checkpoint || resultToken !== 0 || array || isWanting
        ? {
            claims: [claim, second].flatMap((one) => (one ? [claimRow(one)] : [])),
            result,
            resultToken,
            last,
            steps,
            speculated,
            checkpoint,
            failures: task.failures,
            ...(array && { array: (stage.arrays ?? []).indexOf(array) }),
            // Also a zero: what older snapshots leave out is derived from how the last attempt ended.
            ...((outOfMemory > 0 || last) && { outOfMemory }),
            ...(isWanting && { wantsLock: true }),
            ...(waiting && { unpublishedSinceMs: waiting.committedAtMs }),
          }
        : null;
    // The spec is the array's: a million rows must not repeat it.
    const fixed = [no, stage.job.no, stage.index, index, plan.key, array ? "" : plan.spec, plan.affinity ?? null];
    const line = [queuedAtMs, dueAtMs, order, list ? 1 : this.#state.ready.isSpare(task) ? 2 : 0];
    this.#row(["T", ...fixed, this.#template(template), phase, generation, attempts, ...line, rare]);
  }

  #shape(shape: StageShape): number {
    let id = this.#shapes.get(shape);
    if (id === undefined) {
      id = this.#shapes.size;
      this.#shapes.set(shape, id);
      this.#row(["P", id, shape]);
    }
    return id;
  }

  #template(template: TaskTemplate): number {
    let id = this.#templates.get(template);
    if (id === undefined) {
      id = this.#templates.size;
      this.#templates.set(template, id);
      this.#row(["M", id, template]);
    }
    return id;
  }
}

const claimRow = ({ token, executor, leaseMs, grantedAtMs, startedAtMs, expiresAtMs, sleptMs }: Claim): unknown[] => [
  token,
  executor.id,
  leaseMs,
  grantedAtMs,
  startedAtMs,
  expiresAtMs,
  sleptMs,
];

/** Results whose task was planned again since and has another number now: only their job still refers to them. */
const orphansOf = (state: State, job: Job): readonly Publication[] =>
  [...(job.outbox?.values() ?? [])].filter((waiting) => !isTaskOwn(state, waiting)).toSorted((a, b) => a.task - b.task);

const isTaskOwn = (state: State, { task, result }: Publication): boolean => state.tasks.get(task)?.result === result;

const orphanRow = ({ task, generation, result, committedAtMs, spec }: Publication): unknown[] => [
  task,
  generation,
  result,
  committedAtMs,
  spec,
];

const silentRow = (claim: Claim): unknown[] => {
  const { stage } = claim.task;
  return [...claimRow(claim), stage.job.no, stage.index, claim.task.no];
};

const lockRow = ({ key, limit, holders, queue }: Lock): unknown[] => [
  "L",
  key,
  limit,
  holders.map(holderRow),
  queue.map(holderRow),
];

const holderRow = ({ job, stage, task }: LockHolder): readonly number[] =>
  task ? [job.no, task.task.stage.index, task.task.no, task.claims] : [job.no, stage?.index ?? -1];
