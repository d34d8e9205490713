/** Runs a workflow on this machine: the job graph decides, the runner runs, reports go to the caller. */
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { CallJob, Job, NormalJob } from "#doors/ci/workflow/compile/model.ts";
import { calledFrame, calledOutputs, calledSecrets } from "#doors/ci/workflow/plan/called.ts";
import { JobGraph } from "#doors/ci/workflow/plan/graph.ts";
import {
  cellContexts,
  type CellPlan,
  type Frame,
  jobContexts,
  type JobEnd,
  type JobResult,
} from "#doors/ci/workflow/plan/job-plan.ts";
import { TemplateFault } from "#doors/ci/workflow/plan/template.ts";
import { runJob } from "#doors/ci/run/job.ts";
import type { StopGrace } from "#doors/ci/run/process.ts";
import type { JobOutcome, Report } from "#doors/ci/run/report.ts";
import { type JobMachine, jobSpecOf } from "#doors/ci/run/spec.ts";
import { Slots } from "./slots.ts";

/** One running cell of a job. */
export type JobRef = { readonly key: string; readonly name: string };

export type RunReport =
  | { readonly kind: "job-started"; readonly job: JobRef }
  | { readonly kind: "job-skipped"; readonly job: JobRef; readonly why: string }
  | { readonly kind: "job-ended"; readonly job: JobRef; readonly result: JobResult; readonly tookMs: number }
  | { readonly kind: "job"; readonly job: JobRef; readonly report: Report };

export type LocalRun = {
  readonly frame: Frame;
  readonly secrets: ReadonlyMap<string, string>;
  readonly report: (report: RunReport) => void;
  readonly signal: AbortSignal;
  readonly isWanted: (job: Job, cell: CellPlan) => boolean;
  readonly jobsMax: number;
  /** A folder of its own for each job, gone after it. */
  readonly folder: string;
  readonly machine: (job: {
    readonly folder: string;
    readonly secrets: ReadonlyMap<string, string>;
  }) => Promise<JobMachine>;
  readonly grace?: StopGrace;
};

export async function runLocally(run: LocalRun): Promise<JobResult> {
  return (await new Runner(run).frame(run.frame, { prefix: "", secrets: run.secrets })).result;
}

type Level = { readonly prefix: string; readonly secrets: ReadonlyMap<string, string> };
type FrameEnd = { readonly result: JobResult; readonly endOf: (id: string) => JobEnd | undefined };

class Runner {
  readonly #run: LocalRun;
  readonly #slots: Slots;
  #jobs = 0;

  constructor(run: LocalRun) {
    this.#run = run;
    this.#slots = new Slots(run.jobsMax);
  }

  async frame(frame: Frame, level: Level, outer?: AbortSignal): Promise<FrameEnd> {
    const graph = new JobGraph(frame, { isWanted: this.#run.isWanted });
    const controllers = new Map<string, AbortController>();
    const running = new Set<Promise<void>>();
    const advance = (): void => {
      for (const action of graph.next()) {
        const key = action.kind === "start" || action.kind === "cancel" ? `${action.job.id} ${action.cell.index}` : "";
        if (action.kind === "cancel") controllers.get(key)?.abort();
        else if (action.kind !== "start") this.#reportEnd(action.job, level, action);
        else {
          const controller = new AbortController();
          controllers.set(key, controller);
          const work = this.#cell(action.job, action.cell, { graph, frame, level, signal: controller.signal });
          const ended = work.then((end) => {
            graph.ended({ jobId: action.job.id, index: action.cell.index, ...end });
            running.delete(ended);
          });
          running.add(ended);
        }
      }
    };
    const cancel = (): void => {
      graph.cancel();
      advance();
    };
    const signal = outer ? AbortSignal.any([outer, this.#run.signal]) : this.#run.signal;
    signal.addEventListener("abort", cancel, { once: true });
    if (signal.aborted) graph.cancel();
    for (advance(); running.size > 0; advance()) await Promise.race(running);
    signal.removeEventListener("abort", cancel);
    return { result: graph.result ?? "cancelled", endOf: (id) => graph.facts.ends.get(id.toLowerCase()) };
  }

  #reportEnd(
    job: Job,
    { prefix }: Level,
    end: { readonly kind: "skip"; readonly why: string } | { readonly kind: "fail"; readonly message: string },
  ): void {
    const ref = { key: `${prefix}${job.id}`, name: `${prefix}${job.id}` };
    if (end.kind === "skip") return this.#run.report({ kind: "job-skipped", job: ref, why: end.why });
    this.#run.report({ kind: "job-started", job: ref });
    this.#run.report({ kind: "job", job: ref, report: { kind: "job-note", level: "error", text: end.message } });
    return this.#run.report({ kind: "job-ended", job: ref, result: "failure", tookMs: 0 });
  }

  async #cell(job: Job, cell: CellPlan, context: CellContext): Promise<JobOutcome> {
    const ref = { key: `${context.level.prefix}${job.id} ${cell.index}`, name: `${context.level.prefix}${cell.name}` };
    if (job.kind === "call") return await this.#call(job, cell, ref, context);
    return await this.#slots.use(async () => {
      const startedMs = performance.now();
      this.#run.report({ kind: "job-started", job: ref });
      const outcome = await this.#work(job, cell, ref, context);
      this.#run.report({ kind: "job-ended", job: ref, result: outcome.result, tookMs: performance.now() - startedMs });
      return outcome;
    });
  }

  async #work(
    job: NormalJob,
    cell: CellPlan,
    ref: JobRef,
    { graph, frame, level, signal }: CellContext,
  ): Promise<JobOutcome> {
    this.#jobs += 1;
    const folder = join(this.#run.folder, `job-${this.#jobs}`);
    await mkdir(folder, { recursive: true });
    try {
      const machine = await this.#run.machine({ folder, secrets: level.secrets });
      const contexts = cellContexts(jobContexts(job, frame, graph.facts), cell);
      return await runJob(jobSpecOf(job, cell, frame, contexts), machine, {
        report: (report) => this.#run.report({ kind: "job", job: ref, report }),
        signal,
        ...(this.#run.grace && { grace: this.#run.grace }),
      });
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      const text = `the job could not be run: ${error.message}`;
      this.#run.report({ kind: "job", job: ref, report: { kind: "job-note", level: "error", text } });
      return { result: "failure", outputs: new Map() };
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  /** A job that calls a workflow is as good as the jobs in it (CI-61). */
  async #call(
    job: CallJob,
    cell: CellPlan,
    ref: JobRef,
    { graph, frame, level, signal }: CellContext,
  ): Promise<JobOutcome> {
    const failed = (text: string): JobOutcome => {
      this.#run.report({ kind: "job-started", job: ref });
      this.#run.report({ kind: "job", job: ref, report: { kind: "job-note", level: "error", text } });
      this.#run.report({ kind: "job-ended", job: ref, result: "failure", tookMs: 0 });
      return { result: "failure", outputs: new Map() };
    };
    if (!job.called) return failed(`${job.uses} is not at hand: only workflows of this repository can be called here`);
    try {
      const contexts = cellContexts(jobContexts(job, frame, graph.facts), cell);
      const inner = calledFrame(job, frame, contexts);
      const secrets = calledSecrets(job, contexts, level.secrets);
      const end = await this.frame(inner, { prefix: `${ref.name} / `, secrets }, signal);
      const result = end.result === "skipped" ? "success" : end.result;
      return { result, outputs: calledOutputs(job.called.outputs, inner, end.endOf) };
    } catch (error) {
      if (!(error instanceof TemplateFault)) throw error;
      return failed(error.message);
    }
  }
}

type CellContext = {
  readonly graph: JobGraph;
  readonly frame: Frame;
  readonly level: Level;
  readonly signal: AbortSignal;
};
