/** One shard's memory: the things themselves, and indices that can be rebuilt from them. Only `apply` changes it. */
import { missing } from "#base/assert.ts";
import { Agenda } from "#kernel/ready/agenda.ts";
import { Executor, Tenant } from "./entities.ts";
import type { Claim, Job, Publication, Stage, StageShape, Task } from "./entities.ts";
import type { Capture } from "#kernel/snapshot/capture.ts";
import type { Limits } from "./limits.ts";
import type { Locks } from "#kernel/ready/locks.ts";
import { createLocks } from "#kernel/ready/locks.ts";
import { Memory } from "#kernel/memory/memory.ts";
import type { TaskArray } from "./task-array.ts";
import type { TaskTemplate } from "./model.ts";
import { SeriesTable } from "./series.ts";
import { TagIndex } from "./tag-index.ts";
import { Numbered } from "./numbered.ts";
import { ReadyIndex } from "#kernel/ready/ready.ts";
import type { ReadyClass } from "#kernel/ready/ready-queue.ts";
import { Todo } from "#kernel/decide/todo.ts";
import { bytesOfExecutor, bytesOfTenant } from "#kernel/memory/weigh.ts";

export type KeyBinding = { readonly job: number; readonly payloadHash: string; readonly untilMs: number };
export type Due = Task | Claim | Job | Tenant | Executor;

export class State {
  readonly shard: number;
  readonly limits: Limits;
  /**
   * What every member of the cluster can read: only `decide` looks at it, and the host keeps it up to date. Without a
   * host, everything.
   */
  featureLevel = Number.POSITIVE_INFINITY;
  /** The newest instant that the shard has acted on; never goes back (K11). */
  nowMs = 0;
  epoch = 0;
  nextJob = 1;
  nextTask = 1;
  nextToken = 1;
  readonly jobs = new Numbered<Job>();
  /** Of arrays, only the tasks that are queued, claimed or waiting: see task-array.ts. */
  readonly tasks = new Numbered<Task>();
  /** In order of their numbers. */
  readonly #arrays: TaskArray[] = [];
  /** Stages whose manifest is to be written, by its number. */
  readonly manifests = new Map<number, Stage>();
  readonly tenants = new Map<string, Tenant>();
  readonly executors = new Map<string, Executor>();
  /** Request keys, oldest first: all are kept equally long. */
  readonly keys = new Map<string, KeyBinding>();
  /** Until when the journal may hold keys that memory dropped before they expired. */
  keysElsewhereUntilMs = 0;
  readonly merges = new Map<string, Job>();
  readonly tagged = new TagIndex();
  readonly series = new SeriesTable();
  readonly locks: Locks = createLocks();
  /** Unpublished results of all jobs, by task: each task has at most one, of its newest generation. */
  readonly outbox = new Map<number, Publication>();
  /** Jobs that have ended and are still to tell it. */
  readonly telling = new Set<Job>();
  readonly ready = new ReadyIndex();
  readonly agenda = new Agenda<Due>();
  /** Stages and jobs whose next step may be due, in order; emptied by `settle`. */
  readonly unsettled = new Todo<Stage | Job>();
  /** Exceptions thrown by follow-up steps (K12), newest last. Shown to operators; they block nothing. */
  readonly faults: string[] = [];
  liveJobs = 0;
  claims = 0;
  /** Estimated memory of everything, and the request keys' part of it. */
  bytes = 0;
  keyBytes = 0;
  /** The memory limit: the shard's own, or one shared with other shards. */
  memory: Memory;
  /** The claim that the last event ended; history reads it. */
  endedClaim: Claim | undefined;
  /** Claims that the last event made void as a side effect. */
  superseded: Claim[] = [];
  capture: Capture | undefined;
  captures = 0;
  readonly templates = new Map<string, TaskTemplate>();
  readonly shapes = new Map<string, StageShape>();
  /** The most recently used ones: most jobs look like the one before. */
  lastTemplate: TaskTemplate | undefined;
  lastShape: StageShape | undefined;
  #nextOrdinal = 0;

  constructor(shard: number, limits: Limits) {
    this.shard = shard;
    this.limits = limits;
    this.memory = new Memory(limits.stateBytesMax);
  }

  /** From now on the shard uses the limit that all shards with this memory share. */
  shareMemory(memory: Memory): void {
    const before = this.memory;
    before.bytes -= this.bytes;
    this.memory = memory;
    memory.bytes += this.bytes;
    for (const tenant of this.tenants.values()) {
      tenant.account.bytes -= tenant.bytes;
      before.close(tenant.name);
      tenant.account = memory.open(tenant.name);
      tenant.account.bytes += tenant.bytes;
    }
  }

  /** Adds to the job's memory estimate; negative to subtract. */
  grow(job: Job, bytes: number): void {
    job.bytes += bytes;
    job.tenant.bytes += bytes;
    job.tenant.account.bytes += bytes;
    this.weigh(bytes);
  }

  /** Adds to the estimate of things that belong to no job; negative to subtract. */
  weigh(bytes: number): void {
    this.bytes += bytes;
    this.memory.bytes += bytes;
  }

  weighKey(bytes: number): void {
    this.keyBytes += bytes;
    this.weigh(bytes);
  }

  /** Updates the estimate after a change to the executor. */
  weighExecutor(executor: Executor): void {
    const bytes = bytesOfExecutor(executor);
    this.weigh(bytes - executor.bytes);
    executor.bytes = bytes;
  }

  /** Requirement classes that got ready work. The host that holds waiting executors clears it. */
  get woken(): Set<ReadyClass> {
    return this.ready.woken;
  }

  job(no: number): Job {
    return this.jobs.get(no) ?? missing(`job ${no}`);
  }

  stage(job: number, stage: number): Stage {
    return this.job(job).stages[stage] ?? missing(`stage ${stage} of job ${job}`);
  }

  task(no: number): Task {
    return this.findTask(no) ?? missing(`task ${no}`);
  }

  /** A task of an array that does not exist as an object is a copy: to look at, not to change. */
  findTask(no: number): Task | undefined {
    const known = this.tasks.get(no);
    if (known || this.#arrays.length === 0) return known;
    const array = this.arrayOf(no);
    return array?.view(no - array.no);
  }

  /** The array that the number belongs to; it may come from a caller. */
  arrayOf(no: number): TaskArray | undefined {
    if (!Number.isSafeInteger(no)) return undefined;
    let from = 0;
    let to = this.#arrays.length;
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((this.#arrays[middle] as TaskArray).no <= no) from = middle + 1;
      else to = middle;
    }
    const array = this.#arrays[from - 1];
    return array?.has(no) ? array : undefined;
  }

  addArray(array: TaskArray): void {
    if (array.plan.count === 0) return; // it has no number of its own
    const at = this.#arrays.findLastIndex(({ no }) => no < array.no) + 1;
    this.#arrays.splice(at, 0, array);
  }

  dropArray(array: TaskArray): void {
    const at = this.#arrays.indexOf(array);
    if (at !== -1) this.#arrays.splice(at, 1);
  }

  tenant(name: string): Tenant {
    let tenant = this.tenants.get(name);
    if (!tenant) {
      tenant = new Tenant(name, this.#nextOrdinal++, this.shard, this.memory.open(name));
      this.tenants.set(name, tenant);
      this.weigh(bytesOfTenant(name));
    }
    return tenant;
  }

  /** The tenant's last job is gone. A tenant without settings is forgotten, and created again with its next job. */
  mayForget(tenant: Tenant): void {
    const { name, jobs, weight, runningMax, queuedMax, lent, slice, agendaAt, queues } = tenant;
    const isIdle = jobs === 0 && queues.size === 0 && agendaAt === -1;
    const isPlain = weight === 1 && runningMax === 0 && queuedMax === 0 && lent.size === 0 && slice.untilMs === 0;
    if (!isIdle || !isPlain) return;
    this.tenants.delete(name);
    this.memory.close(name);
    this.weigh(-bytesOfTenant(name));
  }

  executor(id: string): Executor {
    let executor = this.executors.get(id);
    if (!executor) {
      executor = new Executor(id);
      this.executors.set(id, executor);
      this.weighExecutor(executor);
    }
    return executor;
  }
}

export const createState = (shard: number, limits: Limits): State => new State(shard, limits);
