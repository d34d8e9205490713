/** Reads a snapshot back: the things from its rows, then every index from the things. */
import { assert, must } from "#base/assert.ts";
import { Fault } from "#base/fault.ts";
import { jobDueAtMs } from "#kernel/apply/cancelling.ts";
import { templateOf } from "#kernel/apply/job.ts";
import { startTelling } from "#kernel/apply/notice.ts";
import { file, toOutbox } from "#kernel/apply/publish.ts";
import { ranOutOfMemory } from "#kernel/apply/task.ts";
import { snapshotVersion } from "./capture.ts";
import { Claim, Job, Stage, type StageShape, Task } from "#kernel/model/entities.ts";
import type { Limits } from "#kernel/model/limits.ts";
import type { LockHolder, TaskLock } from "#kernel/ready/locks.ts";
import type { TaskTemplate } from "#kernel/model/model.ts";
import {
  checkQuota,
  fileClaim,
  fileGivingUp,
  fileQueued,
  fileTimed,
  isJobOver,
  isStageOver,
  isTaskOver,
  reweigh,
} from "#kernel/apply/moves.ts";
import { createState, type State } from "#kernel/model/state.ts";
import { failFastOf } from "#kernel/model/stage-rules.ts";
import type { TaskArray } from "#kernel/model/task-array.ts";
import { readArray, readPage } from "./array-rows.ts";
import { bytesOfKey } from "#kernel/memory/weigh.ts";

/* oxlint-disable typescript/no-explicit-any -- rows are what capture.ts wrote; their checksums were verified before */
type Row = any[];

export type SnapshotRows = readonly Row[];

export const rowsOf = (chunk: string): SnapshotRows => JSON.parse(chunk) as Row[];

/** The column of the spec in the rows of jobs and tasks. */
const specAt: Readonly<Record<string, number>> = { J: 5, T: 6 };

/** Replaces every spec by `map(spec)`, in place. */
export function mapRows(rows: SnapshotRows, map: (text: string) => string): void {
  for (const row of rows) {
    const at = specAt[row[0] as string];
    if (at !== undefined) row[at] = map(row[at] as string);
  }
}

export class Restorer {
  readonly #state: State;
  readonly #shapes: StageShape[] = [];
  readonly #templates: TaskTemplate[] = [];
  readonly #line: Task[] = [];
  readonly #locks: Row[] = [];
  readonly #silent: { readonly executor: string; readonly row: Row }[] = [];
  #virtual = 0;
  #begun = false;

  constructor(shard: number, limits: Limits) {
    this.#state = createState(shard, limits);
  }

  add(chunk: string): void {
    this.addRows(rowsOf(chunk));
  }

  addRows(rows: SnapshotRows): void {
    for (const row of rows) this.#row(row);
  }

  finish(): State {
    const state = this.#state;
    if (!this.#begun) throw new Fault("corrupt", "read a snapshot", { shard: state.shard, why: "it has no header" });
    for (const { executor, row } of this.#silent) this.#silentClaim(executor, row);
    for (const row of this.#locks) this.#lock(row);
    // Queueing moves a returning tenant to the front of the turn order; a restore must not, because no tenant rested.
    const virtuals = [...state.tenants.values()].map((tenant) => tenant.virtual);
    this.#line.sort((a, b) => a.order - b.order);
    for (const task of this.#line) state.ready.enqueue(task);
    for (const [i, tenant] of [...state.tenants.values()].entries()) {
      assert(tenant.virtual === virtuals[i], "restoring queued work costs no share");
      checkQuota(state, tenant);
    }
    state.ready.virtual = this.#virtual;
    for (const job of state.jobs.values()) {
      reweigh(state, job);
      unsettle(state, job);
    }
    return state;
  }

  #row(row: Row): void {
    const kind = row[0] as string;
    if (kind === "H") this.#header(row);
    else if (kind === "N") this.#tenant(row);
    else if (kind === "X") this.#executor(row);
    else if (kind === "L") this.#locks.push(row);
    else if (kind === "P") this.#shapes[row[1]] = row[2];
    else if (kind === "M") this.#templates[row[1]] = templateOf(this.#state, row[2]);
    else if (kind === "J") this.#job(row);
    else if (kind === "S") this.#stage(row);
    else if (kind === "T") this.#task(row);
    else if (kind === "A") this.#array(row);
    else if (kind === "E") readPage(this.#arrayAt(row), row.slice(4));
    else if (kind === "K") this.#key(row);
    else if (kind === "Q") this.#state.weigh(this.#state.series.restore(row[1], row[2]));
    else throw new Fault("corrupt", "read a snapshot", { row: kind });
  }

  #key([, key, job, payloadHash, untilMs]: Row): void {
    this.#state.keys.set(key, { job, payloadHash, untilMs });
    this.#state.weighKey(bytesOfKey(key, { payloadHash }));
  }

  #header([, version, facts]: Row): void {
    const state = this.#state;
    if (version !== snapshotVersion || facts.shard !== state.shard)
      throw new Fault("corrupt", "read a snapshot", { version, shard: facts.shard, wantedShard: state.shard });
    const { nowMs, epoch, nextJob, nextTask, nextToken, keysElsewhereUntilMs } = facts;
    Object.assign(state, { nowMs, epoch, nextJob, nextTask, nextToken, keysElsewhereUntilMs });
    state.ready.resumeOrder(facts.nextOrder);
    this.#virtual = facts.virtual;
    this.#begun = true;
  }

  #tenant([, name, weight, runningMax, queuedMax, home, virtual, lent, slice, sliceNo = 0]: Row): void {
    const tenant = this.#state.tenant(name);
    Object.assign(tenant, { weight, runningMax, queuedMax, home, virtual, slice, sliceNo });
    for (const [borrower, given] of lent) tenant.lent.set(borrower, given);
    const ends = [...[...tenant.lent.values()].flat(), tenant.slice]
      .map(({ untilMs }) => untilMs)
      .filter((end) => end > 0);
    if (ends.length > 0) this.#state.agenda.file(tenant, Math.min(...ends), this.#state.nowMs);
  }

  #executor([, id, drained, failures, nonce, granted, silent]: Row): void {
    const executor = this.#state.executor(id);
    Object.assign(executor, { drained: drained ?? undefined, failures, nonce, granted });
    this.#state.weighExecutor(executor);
    for (const row of silent) this.#silent.push({ executor: id, row });
  }

  #job(row: Row): void {
    const [, no, tenantName, door, name, spec, at, deadlineAtMs, stages, phase, reason, priority, endedAtMs] = row;
    // The stored estimate (13) comes from another version of the program: it is computed again when the whole job is
    // read.
    const [stagesOpen, rare] = row.slice(14);
    const state = this.#state;
    const tenant = state.tenant(tenantName);
    const job = new Job(no, tenant, { door, name, spec, priority, at, deadlineAtMs, stages });
    Object.assign(job, { phase, reason, endedAtMs, stagesOpen });
    job.stages = Array.from<Stage>({ length: stages });
    if (rare) {
      const { mergeKey, lock, audience, reuse, trace, tags, series, cancelled, cancelGraceMs, orphans = [] } = rare;
      Object.assign(job, { mergeKey, lock, reuse, trace, cancelled, cancelGraceMs });
      job.graceUntilMs = rare.graceUntilMs ?? 0;
      if (tags)
        job.extras = {
          tags,
          series,
          notify: rare.notify ?? [],
          tracked: rare.tracked ?? false,
          owed: rare.owed ?? [],
        };
      state.tagged.add(job);
      for (const [task, generation, result, committedAtMs, given] of orphans)
        file(state, { job, task, spec: given ?? "", generation, result, committedAtMs });
      if (audience) job.audience = { ...audience, subscribers: new Set(audience.subscribers) };
    }
    state.jobs.set(no, job);
    tenant.jobs += 1;
    if (isJobOver(job)) return;
    state.liveJobs += 1;
    if (job.mergeKey !== undefined && !job.cancelled)
      state.merges.set(`${tenantName}\u0000${door}\u0000${job.mergeKey}`, job);
    const dueAtMs = jobDueAtMs(job);
    state.agenda.file(job, Number.isFinite(dueAtMs) ? dueAtMs : deadlineAtMs, state.nowMs);
  }

  #stage(row: Row): void {
    const [, jobNo, index, shape, template, phase, reason, generation, waiting, tasks, open, done, failed] = row;
    const [active, nextHeld, runMsSum, runs, startedAtMs, rare] = row.slice(13);
    const job = this.#state.job(jobNo);
    const stage = new Stage(job, index, must(this.#shapes[shape], `shape ${shape}`));
    if (template !== -1) stage.template = must(this.#templates[template], `template ${template}`);
    Object.assign(stage, { phase, reason, generation, waiting, open, done, failed, active, nextHeld, runMsSum });
    Object.assign(stage, { runs, startedAtMs });
    stage.tasks = Array.from<Task>({ length: tasks });
    if (rare) {
      const { cancelled, gate, kept, lockState, pace, decides, templates, lock = stage.lock, manifest } = rare;
      Object.assign(stage, { cancelled, gate, lockState, lock, pace, manifest });
      if (manifest?.no > 0 && manifest.digest === undefined) this.#state.manifests.set(manifest.no, stage);
      if (decides)
        stage.planned = {
          decides,
          templates: templates.map((id: number) => must(this.#templates[id], `template ${id}`)),
        };
      // One and the same object: memory counts it once.
      if (stage.lock && decides?.lock && stage.lock.name === decides.lock.name) stage.lock = decides.lock;
      if (kept) stage.kept = new Map(kept);
    }
    job.stages[index] = stage;
  }

  #array([, jobNo, stageIndex, at, template, ...facts]: Row): void {
    const stage = this.#state.stage(jobNo, stageIndex);
    const array = readArray(stage, must(this.#templates[template], `template ${template}`), facts);
    (stage.arrays ??= [])[at] = array;
    this.#state.addArray(array);
  }

  #arrayAt([, jobNo, stageIndex, at]: Row): TaskArray {
    return must(this.#state.stage(jobNo, stageIndex).arrays?.[at], "array of a page");
  }

  /** Where the task belongs: into its stage's list, or its array. */
  #place(task: Task, array: TaskArray | undefined): void {
    const { stage, index } = task;
    if (index === -1) stage.planning = task;
    else if (array) {
      task.array = array;
      array.live.set(index, task);
      if (task.phase === "READY" && task.order === 0) array.held.push(index);
    } else stage.tasks[index] = task;
  }

  #task(row: Row): void {
    const [, no, jobNo, stageIndex, index, key, spec, affinity, template, phase, generation, attempts] = row;
    const [queuedAtMs, dueAtMs, order, inLine, rare] = row.slice(12);
    const state = this.#state;
    const stage = state.stage(jobNo, stageIndex);
    const array = rare?.array === undefined ? undefined : must(stage.arrays?.[rare.array], "array of a task");
    const plan = affinity === null ? { key, spec: array ? array.plan.spec : spec } : { key, spec, affinity };
    const task = new Task(no, stage, index, plan, must(this.#templates[template], `template ${template}`));
    task.phase = phase;
    task.generation = generation;
    task.attempts = attempts;
    task.queuedAtMs = queuedAtMs;
    task.dueAtMs = dueAtMs;
    task.order = order;
    this.#place(task, array);
    state.tasks.set(no, task);
    if (rare) this.#rareOf(task, rare);
    if (!isTaskOver(phase) && !task.claim) stage.job.tenant.queued += 1;
    if (inLine === 1) this.#line.push(task);
    if (inLine === 2) state.ready.offerSpare(task);
    if (phase === "READY" && inLine === 1) fileQueued(state, task);
    if (phase === "RETRY_PENDING" || phase === "WAITING") fileTimed(state, task);
  }

  #rareOf(task: Task, rare: Row[number]): void {
    const { claims, result, resultToken, last, steps, speculated, checkpoint, unpublishedSinceMs } = rare;
    Object.assign(task, { result, resultToken, last, steps, speculated, checkpoint, failures: rare.failures });
    // Older snapshots do not have the count, only how the last attempt ended.
    task.outOfMemory = rare.outOfMemory ?? (last && ranOutOfMemory(last) ? 1 : 0);
    if (rare.wantsLock) {
      const wanted: TaskLock = { task, state: "wanted", claims: 0 };
      this.#state.locks.tasks.set(task.no, wanted);
      this.#state.locks.wanting.add(wanted);
    }
    if (unpublishedSinceMs !== undefined) toOutbox(this.#state, task, unpublishedSinceMs);
    for (const row of claims) {
      const claim = this.#claim(task, row);
      if (task.claim) task.second = claim;
      else task.claim = claim;
      task.stage.job.tenant.running += 1;
      fileClaim(this.#state, claim);
    }
  }

  #claim(task: Task, [token, executorId, leaseMs, grantedAtMs, startedAtMs, expiresAtMs, sleptMs]: Row): Claim {
    const executor = this.#state.executor(executorId);
    const claim = new Claim(task, token, executor, leaseMs, grantedAtMs);
    claim.startedAtMs = startedAtMs;
    claim.expiresAtMs = expiresAtMs;
    claim.sleptMs = sleptMs;
    executor.claims.set(token, claim);
    task.stage.claims += 1;
    task.stage.job.claims += 1;
    this.#state.claims += 1;
    return claim;
  }

  #silentClaim(executorId: string, row: Row): void {
    const [jobNo, stageIndex, taskNo] = row.slice(7);
    const stage = this.#state.stage(jobNo, stageIndex);
    const known = this.#state.tasks.get(taskNo);
    // The task may have been planned again since; then the claim only counts for its stage.
    const task = known ?? new Task(taskNo, stage, 0, { key: "", spec: "" }, must(this.#templates[0], "a template"));
    const claim = this.#claim(task, [row[0], executorId, ...row.slice(2, 7)]);
    claim.void = true;
    fileClaim(this.#state, claim);
  }

  /** A task that was planned again since: its lock waits for the claims of the attempt that may still run. */
  #forgotten(stage: Stage, no: number, key: string, limit: number): Task {
    const name = key.slice(stage.job.tenant.name.length + 1);
    const lock = { name, limit, queueMax: 0, cancelInProgress: false };
    const task = new Task(no, stage, 0, { key: "", spec: "" }, { ...must(this.#templates[0], "a template"), lock });
    task.phase = "CANCELLED";
    return task;
  }

  #lock([, key, limit, holders, queue]: Row): void {
    const holder =
      (state: TaskLock["state"]) =>
      ([jobNo, index, taskNo, claims]: [number, number, number?, number?]): LockHolder => {
        const job = this.#state.job(jobNo);
        if (index === -1) return { job, stage: undefined };
        const stage = must(job.stages[index], "stage with a lock");
        if (taskNo === undefined) return { job, stage };
        const task = this.#state.tasks.get(taskNo) ?? this.#forgotten(stage, taskNo, key, limit);
        const lock = { task, state, claims: claims ?? 0 };
        this.#state.locks.tasks.set(taskNo, lock);
        return { job, stage, task: lock };
      };
    const lock = { key, limit, holders: holders.map(holder("held")), queue: queue.map(holder("queued")) };
    this.#state.locks.byKey.set(key, lock);
    this.#state.locks.unsettled.add(lock);
  }
}

/** Marks what was about to follow when the snapshot was taken. */
function unsettle(state: State, job: Job): void {
  if (isJobOver(job)) {
    if (job.outbox) fileGivingUp(state, job);
    startTelling(state, job);
    return;
  }
  if (job.stagesOpen === 0) state.unsettled.add(job);
  for (const stage of job.stages) {
    const { phase } = stage;
    if (isStageOver(stage)) continue;
    const mayMove =
      (phase === "BLOCKED" && (stage.waiting === 0 || stage.cancelled)) ||
      (phase === "RUNNING" && (stage.open === 0 || (stage.failed > 0 && failFastOf(stage)))) ||
      (phase === "READY" && stage.planning !== undefined && isTaskOver(stage.planning.phase));
    if (mayMove) state.unsettled.add(stage);
  }
}
