/**
 * What became of the jobs of a run, level by level, as far as their leaves have ended. A call has no stage of its own:
 * whether it runs, in how many cells and to what end follows from the files and from results, each time it is asked.
 * Pure.
 */
import { ancestorsOf } from "#doors/ci/workflow/compile/jobs.ts";
import type { CallJob, Job, NormalJob } from "#doors/ci/workflow/compile/model.ts";
import { calledFrame, calledOutputs, resultOf } from "./called.ts";
import { type CellEnd, endOf } from "./graph.ts";
import {
  cellContexts,
  type CellPlan,
  type Frame,
  type JobEnd,
  type JobFacts,
  jobContexts,
  type JobPlan,
  planJob,
} from "./job-plan.ts";
import { leafName } from "./leaves.ts";
import { TemplateFault } from "./template.ts";

/** What is known of one leaf that has ended. */
export type LeafEnd = {
  readonly phase: "COMPLETED" | "FAILED" | "SKIPPED" | "CANCELLED";
  readonly cells: readonly (CellEnd & { readonly callers: readonly number[] })[];
};

/** Matrices over calls within one another multiply: what is more than this fails, in little time. */
const callsMax = 1_000;
const looksMax = 2 * callsMax;
const tooMany = `A run may have at most ${callsMax} calls of workflows at one place`;

/** One workflow of the run: its own, or one that a cell of a job calls. */
export type Level = {
  readonly frame: Frame;
  readonly ids: readonly string[];
  /** The cells of the calling jobs, from the run's own workflow down. */
  readonly cells: readonly CellPlan[];
  /** What each of the calling jobs was planned from. */
  readonly facts: readonly JobFacts[];
  /** Undefined for the run's own. */
  readonly outer?: Level;
  /** A sibling of a call has failed: what has not begun is not begun. */
  readonly isStopped: boolean;
};

export type Known = {
  readonly leaves: ReadonlyMap<string, LeafEnd>;
  readonly isCancelled: boolean;
};

/** Where a leaf runs: once for each cell of the jobs that call it. */
export type Places = {
  readonly levels: readonly Level[];
  readonly skipped: readonly string[];
  readonly failed: readonly string[];
};

export class Replay {
  readonly #known: Known;
  readonly #ends = new Map<string, JobEnd>();
  #looks = 0;
  readonly top: Level;

  constructor(frame: Frame, known: Known) {
    this.#known = known;
    this.top = { frame, ids: [], cells: [], facts: [], isStopped: false };
  }

  /** Where the workflow that the last of these jobs calls runs, and why not elsewhere. */
  placesOf(callers: readonly CallJob[]): Places {
    let places: Places = { levels: [this.top], skipped: [], failed: [] };
    for (const job of callers) places = this.#below(job, places);
    return places;
  }

  plan(level: Level, job: Job): JobPlan {
    const isCancelled = this.#known.isCancelled && !(job.kind === "call" && this.#hasBegun(level, job));
    return planJob(job, level.frame, this.facts(level, job, isCancelled || level.isStopped));
  }

  facts(level: Level, job: Job, isCancelled = false): JobFacts {
    const ids = ancestorsOf(job, level.frame.workflow.jobs);
    return { ends: new Map(ids.map((id) => [id.toLowerCase(), this.#endById(level, id)])), isCancelled };
  }

  end(level: Level, job: Job): JobEnd {
    const key = JSON.stringify([...level.ids, job.id, level.cells.map(({ index }) => index)]);
    const known = this.#ends.get(key);
    if (known) return known;
    const end = job.kind === "job" ? this.#leafEnd(level, job) : this.#callEnd(level, job);
    this.#ends.set(key, end);
    return end;
  }

  #endById(level: Level, id: string): JobEnd {
    const job = level.frame.workflow.jobs.find((one) => one.id.toLowerCase() === id.toLowerCase());
    return job ? this.end(level, job) : { result: "skipped", outputs: new Map() };
  }

  #leafEnd(level: Level, job: NormalJob): JobEnd {
    const leaf = this.#known.leaves.get(leafName([...level.ids, job.id]));
    if (!leaf || leaf.phase === "SKIPPED") return { result: "skipped", outputs: new Map() };
    const cells = leaf.cells.filter(({ callers }) => isSame(callers, level));
    if (cells.length === 0) return { result: this.#resultWithoutCells(level, job, leaf), outputs: new Map() };
    const end = endOf(cells);
    if (level.ids.length > 0) return end; // the leaf's phase speaks of other calls as well
    if (leaf.phase === "FAILED" && end.result === "success") return { ...end, result: "failure" };
    return leaf.phase === "CANCELLED" ? { ...end, result: "cancelled" } : end;
  }

  #resultWithoutCells(level: Level, job: NormalJob, { phase }: LeafEnd): JobEnd["result"] {
    const plan = level.ids.length > 0 ? this.plan(level, job) : undefined;
    if (plan?.kind === "skip") return "skipped";
    return plan?.kind === "fail" || phase === "FAILED" ? "failure" : "cancelled";
  }

  /** A call is as good as the jobs that it leads to. */
  #callEnd(level: Level, job: CallJob): JobEnd {
    if (this.#looks > looksMax) return { result: "failure", outputs: new Map() };
    const plan = this.plan(level, job);
    if (plan.kind !== "run") return { result: plan.kind === "skip" ? "skipped" : "failure", outputs: new Map() };
    return endOf(plan.cells.map((cell) => this.#calledEnd(level, job, [cell, plan.cells])));
  }

  #calledEnd(level: Level, job: CallJob, [cell, all]: readonly [CellPlan, readonly CellPlan[]]): CellEnd {
    const shared = { jobId: job.id, index: cell.index };
    try {
      const inner = this.#stopped(this.#inner(level, job, cell), level, job, all);
      const ends = new Map(inner.frame.workflow.jobs.map((one) => [one.id, this.end(inner, one)]));
      const result = resultOf([...ends.values()].map((end) => end.result));
      const outputs = calledOutputs(job.called?.outputs, inner.frame, (id) => ends.get(id));
      return { ...shared, result: result === "skipped" ? "success" : result, outputs };
    } catch (error) {
      if (!(error instanceof TemplateFault)) throw error;
      return { ...shared, result: "failure", outputs: new Map() };
    }
  }

  #below(job: CallJob, { levels, ...not }: Places): Places {
    const found: Level[] = [];
    const skipped = [...not.skipped];
    const failed = [...not.failed];
    for (const level of levels) {
      const plan = this.plan(level, job);
      if (plan.kind === "skip") skipped.push(plan.why);
      else if (plan.kind === "fail") failed.push(plan.message);
      else if (found.length + plan.cells.length > callsMax)
        return { levels: [], skipped, failed: [...failed, tooMany] };
      else
        for (const cell of plan.cells)
          try {
            found.push(this.#stopped(this.#inner(level, job, cell), level, job, plan.cells));
          } catch (error) {
            if (!(error instanceof TemplateFault)) throw error;
            failed.push(error.message);
          }
    }
    return { levels: found, skipped, failed };
  }

  #inner(level: Level, job: CallJob, cell: CellPlan): Level {
    this.#looks += 1;
    if (this.#looks > looksMax) throw new TemplateFault(tooMany, job.usesAt);
    const facts = this.facts(level, job);
    const contexts = cellContexts(jobContexts(job, level.frame, facts), cell);
    return {
      frame: calledFrame(job, level.frame, contexts),
      ids: [...level.ids, job.id],
      cells: [...level.cells, cell],
      facts: [...level.facts, facts],
      outer: level,
      isStopped: level.isStopped,
    };
  }

  /** CI-20 for calls: where one has failed, jobs of its siblings that have not begun are not begun. */
  #stopped(inner: Level, outer: Level, job: CallJob, cells: readonly CellPlan[]): Level {
    const own = inner.cells.at(-1);
    if (!own?.failFast || cells.length < 2) return inner;
    const others = cells.filter(({ index }) => index !== own.index).map(({ index }) => index);
    return this.#hasFailed(outer, job, new Set(others)) ? { ...inner, isStopped: true } : inner;
  }

  #hasFailed(outer: Level, job: CallJob, others: ReadonlySet<number>): boolean {
    const at = outer.cells.length;
    return this.#cellsBelow(outer, job).some(
      ({ callers, result }) =>
        result === "failure" && others.has(callers[at] ?? -1) && isSame(callers.slice(0, at), outer),
    );
  }

  #hasBegun(level: Level, job: CallJob): boolean {
    return this.#cellsBelow(level, job).some(({ callers }) => isSame(callers.slice(0, level.cells.length), level));
  }

  #cellsBelow(level: Level, job: CallJob): LeafEnd["cells"] {
    const start = `${leafName([...level.ids, job.id])}/`;
    return [...this.#known.leaves].flatMap(([name, { cells }]) => (name.startsWith(start) ? cells : []));
  }
}

const isSame = (callers: readonly number[], { cells }: Level): boolean =>
  callers.length === cells.length && cells.every(({ index }, at) => index === callers[at]);
