/**
 * Runs one job: a specification in, reports out. It does not know whether it runs on a laptop or for a claim of a
 * fleet; the caller gives it a machine, a place for reports, and a signal to cancel it.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { Condition, Step, UsesStep } from "#doors/ci/workflow/compile/model.ts";
import { isLocalUses } from "#doors/ci/workflow/compile/ids.ts";
import type { Availability } from "#doors/ci/workflow/expression/availability.ts";
import type { Scope } from "#doors/ci/workflow/expression/evaluate.ts";
import { type ConditionPart, explain, mapTexts } from "#doors/ci/workflow/expression/explain.ts";
import { parseExpression } from "#doors/ci/workflow/expression/parse.ts";
import { Dictionary } from "#doors/ci/workflow/expression/value.ts";
import { conditionHolds, templateNumber, templateTexts } from "#doors/ci/workflow/plan/template.ts";
import { places } from "#doors/ci/workflow/schema/places.ts";
import { actionOf, depthMax, frameBefore, type PostStep, preOf, runAction, runPost, runPre } from "./action-work.ts";
import { Backgrounds } from "./backgrounds.ts";
import { startContainers } from "#doors/ci/containers/start.ts";
import { withPaths } from "./said/file-commands.ts";
import { type JobMemory, recall, remember } from "./job-memory.ts";
import { type Frame, JobState, merged } from "./job-state.ts";
import { standardGrace, type StopGrace } from "./process.ts";
import type { JobOutcome, Report, StepOutcome, StepRef } from "./report.ts";
import type { JobMachine, JobSpec } from "./spec.ts";
import { StepOutput } from "#doors/ci/run/printed/step-output.ts";
import { runScript, type StepJob, type WorkEnd } from "./step-work.ts";
import { timerMs, watchCancel } from "./cancel.ts";
import { environmentUrl, isKnown, jobOutputs, mayFail, ownEnv, stepName, type WorkStep } from "./step-facts.ts";
import { Stopping } from "./stopping.ts";

export type JobPorts = {
  readonly report: (report: Report) => void;
  /** Aborted to cancel the job. */
  readonly signal: AbortSignal;
  readonly grace?: StopGrace;
  /**
   * Called between steps, while nothing of the job runs: the next step starts when it resolves. With what it was given
   * last, another process can go on.
   */
  readonly keep?: (memory: JobMemory) => Promise<void>;
  /** What an earlier process of the same job was given last; its files are in place. */
  readonly memory?: JobMemory | undefined;
};

export async function runJob(spec: JobSpec, machine: JobMachine, ports: JobPorts): Promise<JobOutcome> {
  const run = new JobRun(spec, machine, ports);
  return await run.run();
}

/** Between two tries of one step. */
const retryMs = 500;
const retryMsMax = 30_000;

const ifPlace = ({ depth }: Frame): Availability => (depth > 0 ? places.actionStepIf : places.stepIf);

/** The end of a step, not yet seen by the steps after it. */
type Finished = { readonly apply: () => void };

class JobRun {
  readonly #state: JobState;
  readonly #ports: JobPorts;
  readonly #stopping = new Stopping();
  readonly #posts: PostStep[] = [];
  readonly #backgrounds = new Backgrounds<Finished>();
  #initialEnv: ReadonlyMap<string, string> = new Map();
  #isTimeout = false;
  #steps = 0;
  /** The first of the job's steps that has not ended. */
  #next = 0;

  constructor(spec: JobSpec, machine: JobMachine, ports: JobPorts) {
    this.#state = new JobState(spec, machine);
    this.#ports = ports;
  }

  async run(): Promise<JobOutcome> {
    using _watch = this.#watchCancel();
    const { root } = this.#state;
    try {
      this.#setUp();
      await this.#startContainers();
      await this.#begin();
      for (const step of this.#state.spec.steps.slice(this.#next)) {
        if (this.#stopping.isKilled) break;
        await this.#one(step, root);
        this.#next += 1;
        await this.#keep();
      }
      await this.#finishBackgrounds();
    } catch (error) {
      if (!isKnown(error)) throw error;
      this.#note("error", error.message);
      root.status = merged(root.status, "failure");
    }
    try {
      await this.#runPosts();
      const outputs = jobOutputs(this.#state, (level, text) => this.#note(level, text));
      const url = environmentUrl(this.#state, (level, text) => this.#note(level, text));
      return {
        result: root.status,
        outputs,
        ...(url !== undefined && { environmentUrl: url }),
        ...(this.#isTimeout && { isTimeout: true }),
      };
    } finally {
      this.#state.groups.killAll();
      await this.#state.machine.containers?.close();
    }
  }

  async #begin(): Promise<void> {
    const { memory } = this.#ports;
    this.#initialEnv = new Map(this.#state.env);
    if (!memory) {
      await this.#prepareActions(this.#state.spec.steps, this.#state.root);
      return await this.#keep();
    }
    this.#posts.push(...recall(this.#state, memory));
    this.#steps = memory.numbered;
    this.#next = memory.next;
  }

  /** What runs beside the steps is in no file: while there is any, the job can only be started again. */
  async #keep(): Promise<void> {
    if (!this.#ports.keep || this.#stopping.isCancelled || this.#backgrounds.isActive) return;
    if (this.#state.groups.areAlive) return;
    const progress = { next: this.#next, numbered: this.#steps, posts: this.#posts, initialEnv: this.#initialEnv };
    await this.#ports.keep(remember(this.#state, progress));
  }

  #setUp(): void {
    const { spec, env } = this.#state;
    for (const node of [spec.workflowEnv, spec.jobEnv])
      if (node)
        for (const [name, value] of templateTexts(node, this.#state.scope(this.#state.root, new Map())))
          env.set(name, value);
  }

  async #startContainers(): Promise<void> {
    using running = this.#stopping.enter(() => false);
    await startContainers(this.#state, (level, text) => this.#note(level, text), running.signal);
  }

  #watchCancel(): Disposable {
    const { spec, root } = this.#state;
    return watchCancel({
      timeoutMinutes: spec.timeoutMinutes,
      cancelTimeoutMinutes: spec.cancelTimeoutMinutes,
      signal: this.#ports.signal,
      onTimeout: () => {
        this.#isTimeout = !this.#stopping.isCancelled;
        this.#note("error", `The job has exceeded the maximum execution time of ${spec.timeoutMinutes} minutes.`);
      },
      onCancel: () => {
        root.status = merged(root.status, "cancelled");
        this.#stopping.cancel();
      },
      onKill: () => this.#stopping.kill(),
    });
  }

  /** CI-13: also those that composite actions use. Whatever is wrong with those is said when they run. */
  async #prepareActions(steps: readonly Step[], outer: Frame): Promise<void> {
    for (const step of steps) {
      if (step.kind !== "uses" || isLocalUses(step.uses) || step.uses.startsWith("docker://")) continue;
      const frame = { ...outer, key: `${outer.key}/${step.id}` };
      if (outer.depth > 0) await this.#prepareAction(step, frame).catch(() => {});
      else await this.#prepareAction(step, frame);
    }
  }

  async #prepareAction(step: UsesStep, frame: Frame): Promise<void> {
    const action = await actionOf(step.uses, this.#state);
    const { runs } = action;
    if (runs.kind === "composite") {
      if (frame.depth >= depthMax || !runs.steps.some(({ kind }) => kind === "uses")) return;
      const inner = frameBefore(step, action, frame, this.#state);
      return await this.#prepareActions(runs.steps, inner);
    }
    if (preOf(runs) === undefined) return;
    const named = { id: step.id, name: `Pre ${step.uses}`, condition: runs.preIf, frame, env: new Map() };
    await this.#work(named, (job) => runPre(step, action, job));
  }

  async #stepsOf(steps: readonly Step[], frame: Frame, outer?: AbortSignal): Promise<void> {
    for (const step of steps) {
      if (this.#stopping.isKilled || outer?.aborted) return;
      await this.#one(step, frame, outer);
    }
  }

  async #one(step: Step, frame: Frame, outer?: AbortSignal): Promise<void> {
    switch (step.kind) {
      case "run":
      case "uses":
        if (step.isBackground && frame.depth === 0)
          await this.#backgrounds.start(step.id, (signal) => this.#step(step, frame, signal));
        else (await this.#step(step, frame, outer)).apply();
        return;
      case "parallel": {
        const ends = await Promise.all(
          step.steps.flatMap((inner) =>
            inner.kind === "run" || inner.kind === "uses" ? [this.#step(inner, frame, outer)] : [],
          ),
        );
        for (const end of ends) end.apply();
        return;
      }
      case "wait":
        for (const id of step.ids) for (const end of await this.#backgrounds.wait(id)) end.apply();
        return;
      case "wait-all":
        return await this.#finishBackgrounds();
      default:
        for (const end of await this.#backgrounds.cancel(step.target)) end.apply();
    }
  }

  async #finishBackgrounds(): Promise<void> {
    for (const end of await this.#backgrounds.waitAll()) end.apply();
  }

  async #step(step: WorkStep, outerFrame: Frame, outer?: AbortSignal): Promise<Finished> {
    const github = new Dictionary(outerFrame.github.entries());
    github.set("action", step.id);
    if (outerFrame.depth > 0) github.set("action_status", outerFrame.status);
    const frame: Frame = { ...outerFrame, key: `${outerFrame.key}/${step.id}`, github };
    const before = this.#state.envOf(frame);
    const name = stepName(step, this.#state.scope(frame, before));
    const ref = this.#ref(step.id, name, frame);
    const output = this.#output(ref);
    const env = this.#guarded(output, () => new Map([...before, ...ownEnv(step, this.#state.scope(frame, before))]));
    const condition = env && this.#guarded(output, () => this.#holds(step.if, frame, env));
    const finish = (outcome: StepOutcome, conclusion: StepOutcome): Finished => ({
      apply: () => this.#apply(step, outerFrame, output, { outcome, conclusion }),
    });
    if (env && condition === false) {
      const why = this.#mask(step.if.source ?? step.if.expression);
      this.#ports.report({ kind: "step-skipped", step: ref, why, condition: this.#explained(step.if, frame, env) });
      return finish("skipped", "skipped");
    }
    const startedMs = performance.now();
    this.#ports.report({ kind: "step-started", step: ref });
    output.flush();
    const outcome = env && condition ? await this.#tried(step, { frame, ref, env, output }, outer) : "failure";
    const conclusion =
      outcome === "failure" && mayFail(step, this.#state.scope(frame, env ?? before)) ? "success" : outcome;
    this.#ports.report({ kind: "step-ended", step: ref, outcome, conclusion, tookMs: performance.now() - startedMs });
    return finish(outcome, conclusion);
  }

  /** As often as `retry` says, while the step ends for one of its reasons. */
  async #tried(
    step: WorkStep,
    parts: Pick<StepJob, "frame" | "ref" | "env" | "output">,
    outer?: AbortSignal,
  ): Promise<WorkEnd> {
    const { triesMax = 1, on = [], delayMs = retryMs } = step.retry ?? {};
    for (let tries = 1; ; tries += 1) {
      const { end, isTimeout } = await this.#timed(step, parts, outer);
      const isWanted = end === "failure" && on.includes(isTimeout ? "timed-out" : "failure");
      if (!isWanted || tries >= triesMax || this.#stopping.isCancelled || outer?.aborted) return end;
      parts.output.annotate({ level: "warning", message: `Try ${tries} of ${triesMax} failed; the step runs again.` });
      using waiting = this.#stopping.enter(() => false);
      const signals = [waiting.signal, ...(outer ? [outer] : [])];
      const pauseMs = Math.min(Math.max(retryMsMax, delayMs), delayMs * 2 ** (tries - 1));
      await pause(pauseMs, undefined, { signal: AbortSignal.any(signals) }).catch(() => {});
      if (this.#stopping.isCancelled || outer?.aborted) return end;
    }
  }

  /** With the step's own limit of time: over it is a failure, not a cancellation (CI-14). */
  async #timed(
    step: WorkStep,
    { frame, ref, env, output }: Pick<StepJob, "frame" | "ref" | "env" | "output">,
    outer?: AbortSignal,
  ): Promise<{ readonly end: WorkEnd; readonly isTimeout: boolean }> {
    const scope = this.#state.scope(frame, env);
    const minutes = this.#guarded(output, () => (step.timeoutMinutes ? templateNumber(step.timeoutMinutes, scope) : 0));
    if (minutes === undefined) return { end: "failure", isTimeout: false };
    const timeout = new AbortController();
    const timer = minutes > 0 ? setTimeout(() => timeout.abort(), timerMs(minutes)) : undefined;
    using running = this.#stopping.enter(
      () => frame.depth > 0 || this.#guarded(output, () => this.#holds(step.if, frame, env)) === true,
    );
    const signals = [running.signal, timeout.signal, ...(outer ? [outer] : [])];
    const job: StepJob = { ...this.#job(ref, frame, env, output), signal: AbortSignal.any(signals) };
    try {
      const end = await this.#caught(output, () => this.#perform(step, job));
      if (!timeout.signal.aborted) return { end, isTimeout: false };
      output.annotate({ level: "error", message: `The action '${ref.name}' has timed out after ${minutes} minutes.` });
      return { end: "failure", isTimeout: true };
    } finally {
      clearTimeout(timer);
    }
  }

  async #perform(step: WorkStep, job: StepJob): Promise<WorkEnd> {
    if (step.kind === "run") return await runScript(step, job);
    return await runAction(step, job, {
      posts: this.#posts,
      inner: (steps, frame, signal) => this.#stepsOf(steps, frame, signal),
    });
  }

  #apply(
    step: WorkStep,
    frame: Frame,
    { effects }: StepOutput,
    { outcome, conclusion }: { readonly outcome: StepOutcome; readonly conclusion: StepOutcome },
  ): void {
    for (const [name, value] of effects.env) this.#state.env.set(name, value);
    this.#state.paths = withPaths(this.#state.paths, effects.paths);
    if (step.isIdGiven)
      frame.steps.set(
        step.id,
        new Dictionary([
          ["outputs", new Dictionary(effects.outputs)],
          ["outcome", outcome],
          ["conclusion", conclusion],
        ]),
      );
    frame.status = merged(frame.status, conclusion);
  }

  async #runPosts(): Promise<void> {
    for (let post = this.#posts.at(-1); post; post = this.#posts.at(-1)) {
      if (this.#stopping.isKilled) return;
      const running = post;
      const frame = { ...post.frame, status: this.#state.root.status };
      const named = { id: "", name: post.name, condition: post.if, frame, env: post.env };
      await this.#work(named, (job) => runPost(running, job));
      this.#posts.pop();
      await this.#keep();
    }
  }

  /** Work around the steps: before all of them, or after. */
  async #work(
    named: {
      readonly id: string;
      readonly name: string;
      readonly condition: Condition;
      readonly frame: Frame;
      readonly env: ReadonlyMap<string, string>;
    },
    perform: (job: StepJob) => Promise<WorkEnd>,
  ): Promise<void> {
    const frame = { ...named.frame, depth: 0 };
    const ref = this.#ref(named.id, named.name, frame);
    const output = this.#output(ref);
    const env = new Map([...this.#state.env, ...named.env]);
    const stillHolds = (): boolean =>
      this.#guarded(output, () =>
        conditionHolds(named.condition, places.actionRunsIf, this.#state.scope(frame, env)),
      ) === true;
    if (!stillHolds()) return;
    this.#ports.report({ kind: "step-started", step: ref });
    output.flush();
    const startedMs = performance.now();
    using running = this.#stopping.enter(stillHolds);
    const job: StepJob = { ...this.#job(ref, frame, env, output), signal: running.signal };
    const end = await this.#caught(output, () => perform(job));
    for (const [name, value] of output.effects.env) this.#state.env.set(name, value);
    this.#state.root.status = merged(this.#state.root.status, end);
    this.#ports.report({
      kind: "step-ended",
      step: ref,
      outcome: end,
      conclusion: end,
      tookMs: performance.now() - startedMs,
    });
  }

  #holds(condition: Condition, frame: Frame, env: ReadonlyMap<string, string>): boolean {
    return conditionHolds(condition, ifPlace(frame), this.#ifScope(frame, env));
  }

  #explained(condition: Condition, frame: Frame, env: ReadonlyMap<string, string>): ConditionPart {
    const parsed = parseExpression(condition.expression, ifPlace(frame));
    const part = explain(parsed, this.#ifScope(frame, env), () => `the job's status is ${this.#state.root.status}`);
    return mapTexts(part, (text) => this.#mask(text));
  }

  #ifScope(frame: Frame, env: ReadonlyMap<string, string>): Scope {
    const current = frame.depth === 0 ? { ...frame, status: this.#state.root.status } : frame;
    return this.#state.scope(current, env);
  }

  #ref(id: string, name: string, frame: Frame): StepRef {
    this.#steps += 1;
    return { number: this.#steps - 1, id, name: this.#mask(name), depth: frame.depth };
  }

  #output(ref: StepRef): StepOutput {
    return new StepOutput({
      step: ref,
      masks: this.#state.masks,
      matchers: this.#state.matchers,
      report: this.#ports.report,
      showsDebug: this.#state.showsDebug,
      workspace: this.#state.machine.workspace,
      allowsUnsecure: this.#isSet("ACTIONS_ALLOW_UNSECURE_COMMANDS"),
      allowsAnyToken: this.#isSet("ACTIONS_ALLOW_UNSECURE_STOPCOMMAND_TOKENS"),
    });
  }

  #job(ref: StepRef, frame: Frame, env: ReadonlyMap<string, string>, output: StepOutput): Omit<StepJob, "signal"> {
    const scope = this.#state.scope(frame, env);
    const { report, grace = standardGrace } = this.#ports;
    return { state: this.#state, frame, ref, env, scope, output, grace, report };
  }

  #isSet(name: string): boolean {
    return ["true", "1"].includes(this.#state.env.get(name)?.toLowerCase() ?? "");
  }

  #mask(text: string): string {
    return this.#state.masks.mask(text);
  }

  #note(level: "error" | "warning" | "plain", text: string): void {
    this.#ports.report({ kind: "job-note", level, text: this.#mask(text) });
  }

  #guarded<T>(output: StepOutput, work: () => T): T | undefined {
    try {
      return work();
    } catch (error) {
      if (!isKnown(error)) throw error;
      output.annotate({ level: "error", message: error.message });
      return undefined;
    }
  }

  async #caught(output: StepOutput, work: () => Promise<WorkEnd>): Promise<WorkEnd> {
    try {
      return await work();
    } catch (error) {
      if (!isKnown(error)) throw error;
      output.annotate({ level: "error", message: error.message });
      return "failure";
    }
  }
}
