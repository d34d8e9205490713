/**
 * The jobs of one workflow as a machine: results go in, what to do next comes out. No clock, no I/O, so that the local
 * runner and the planner of a run decide alike. CI-3 to CI-9, CI-20.
 */
import type { Job } from "#doors/ci/workflow/compile/model.ts";
import { resultOf } from "./called.ts";
import {
  type CellPlan,
  type Frame,
  holds,
  type JobEnd,
  type JobFacts,
  type JobPlan,
  type JobResult,
  planJob,
} from "./job-plan.ts";

export type GraphAction =
  | { readonly kind: "start"; readonly job: Job; readonly cell: CellPlan }
  | { readonly kind: "skip"; readonly job: Job; readonly why: string }
  | { readonly kind: "fail"; readonly job: Job; readonly message: string }
  /** A cell that runs should stop: a sibling failed, or the run is cancelled. */
  | { readonly kind: "cancel"; readonly job: Job; readonly cell: CellPlan };

export type CellEnd = {
  readonly jobId: string;
  readonly index: number;
  readonly result: Exclude<JobResult, "skipped">;
  readonly outputs: ReadonlyMap<string, string>;
};

type Running = {
  readonly job: Job;
  readonly waiting: CellPlan[];
  readonly running: Map<number, CellPlan>;
  /** In the order in which they ended: the last one's outputs win. */
  readonly ended: CellEnd[];
  readonly cancelRequested: Set<number>;
  isStopping: boolean;
};

export type GraphOptions = {
  /** Cells for which this returns false do not run. */
  readonly isWanted?: (job: Job, cell: CellPlan) => boolean;
};

export class JobGraph {
  readonly #frame: Frame;
  readonly #isWanted: (job: Job, cell: CellPlan) => boolean;
  readonly #ends = new Map<string, JobEnd>();
  readonly #running = new Map<string, Running>();
  #isCancelled = false;

  constructor(frame: Frame, options: GraphOptions = {}) {
    this.#frame = frame;
    this.#isWanted = options.isWanted ?? (() => true);
  }

  /** What has become possible since the last call. */
  next(): readonly GraphAction[] {
    const actions: GraphAction[] = [];
    for (let before = -1; before !== actions.length;) {
      before = actions.length;
      for (const job of this.#frame.workflow.jobs) if (this.#isReady(job)) actions.push(...this.#plan(job));
    }
    for (const running of this.#running.values()) actions.push(...this.#advance(running));
    return actions;
  }

  ended(end: CellEnd): void {
    const running = this.#running.get(end.jobId.toLowerCase());
    const cell = running?.running.get(end.index);
    if (!running || !cell) return; // an end that was told before
    running.running.delete(end.index);
    running.ended.push(end.result === "failure" && cell.isFailureAllowed ? { ...end, result: "success" } : end);
    const hasFailed = end.result === "failure" && !cell.isFailureAllowed;
    if (hasFailed && cell.failFast) running.isStopping = true;
    this.#settle(running);
  }

  /** Jobs whose condition still holds go on (CI-11). */
  cancel(): void {
    this.#isCancelled = true;
    for (const running of this.#running.values())
      if (!holds(running.job, this.#frame, this.facts).holds) running.isStopping = true;
  }

  get facts(): JobFacts {
    return { ends: this.#ends, isCancelled: this.#isCancelled };
  }

  /** Undefined while something is left to do. */
  get result(): JobResult | undefined {
    if (this.#frame.workflow.jobs.some((job) => !this.#ends.has(job.id.toLowerCase()))) return undefined;
    return resultOf([...this.#ends.values()].map((end) => end.result));
  }

  #isReady(job: Job): boolean {
    const id = job.id.toLowerCase();
    if (this.#ends.has(id) || this.#running.has(id)) return false;
    return job.needs.every((need) => this.#ends.has(need.id.toLowerCase()));
  }

  #plan(job: Job): readonly GraphAction[] {
    const id = job.id.toLowerCase();
    const plan = this.#wanted(job, planJob(job, this.#frame, this.facts));
    if (plan.kind === "run") {
      const waiting = [...plan.cells];
      this.#running.set(id, {
        job,
        waiting,
        running: new Map(),
        ended: [],
        cancelRequested: new Set(),
        isStopping: false,
      });
      return [];
    }
    this.#ends.set(id, { result: plan.kind === "skip" ? "skipped" : "failure", outputs: new Map() });
    return [{ ...plan, job }];
  }

  #wanted(job: Job, plan: JobPlan): JobPlan {
    if (plan.kind !== "run") return plan;
    const cells = plan.cells.filter((cell) => this.#isWanted(job, cell));
    return cells.length > 0 ? { ...plan, cells } : { kind: "skip", why: "no cell of its matrix was asked for" };
  }

  #advance(running: Running): readonly GraphAction[] {
    const actions: GraphAction[] = [];
    if (running.isStopping) {
      for (const cell of running.waiting.splice(0)) running.ended.push(cancelledEnd(running.job, cell));
      for (const [index, cell] of running.running) {
        if (running.cancelRequested.has(index)) continue;
        running.cancelRequested.add(index);
        actions.push({ kind: "cancel", job: running.job, cell });
      }
      this.#settle(running);
    }
    while (running.waiting.length > 0 && running.running.size < (running.waiting[0]?.maxParallel ?? 1)) {
      const cell = running.waiting.shift();
      if (!cell) break;
      running.running.set(cell.index, cell);
      actions.push({ kind: "start", job: running.job, cell });
    }
    return actions;
  }

  #settle(running: Running): void {
    if (running.isStopping)
      for (const cell of running.waiting.splice(0)) running.ended.push(cancelledEnd(running.job, cell));
    if (running.waiting.length > 0 || running.running.size > 0) return;
    const id = running.job.id.toLowerCase();
    if (this.#ends.has(id)) return;
    this.#running.delete(id);
    this.#ends.set(id, endOf(running.ended));
  }
}

function cancelledEnd(job: Job, cell: CellPlan): CellEnd {
  return { jobId: job.id, index: cell.index, result: "cancelled", outputs: new Map() };
}

/** One end for all cells of a job. */
export function endOf(cells: readonly CellEnd[]): JobEnd {
  const results = new Set(cells.map((cell) => cell.result));
  const result = results.has("failure") ? "failure" : results.has("cancelled") ? "cancelled" : "success";
  const outputs = new Map<string, string>();
  for (const cell of cells) for (const [name, value] of cell.outputs) if (value !== "") outputs.set(name, value);
  return { result, outputs };
}
