/** The work of a step that uses an action. */
import { existsSync } from "node:fs";
import { isAbsolute, join, relative } from "node:path";
import { isLocalUses } from "#doors/ci/workflow/compile/ids.ts";
import type { Condition, UsesStep } from "#doors/ci/workflow/compile/model.ts";
import { Dictionary } from "#doors/ci/workflow/expression/value.ts";
import { templateText, templateTexts } from "#doors/ci/workflow/plan/template.ts";
import { envContext, inputVariable } from "./environment.ts";
import { type Frame, type JobState } from "./job-state.ts";
import { type Action, ActionFault, type ActionRuns, dockerAction, readAction } from "./manifest.ts";
import { runDocker } from "#doors/ci/containers/act.ts";
import { type StepJob, runCommand, type WorkEnd } from "./step-work.ts";

/** What is left to do for an action when all steps have ended (CI-13). Data, so that another process can do it. */
export type PostStep = {
  readonly name: string;
  readonly if: Condition;
  readonly frame: Frame;
  readonly env: ReadonlyMap<string, string>;
  readonly uses: string;
  /** Of the action's files, the one to run. */
  readonly file: string;
  readonly inputs: ReadonlyMap<string, string>;
  /** What the action's parts before said with save-state. */
  readonly state: ReadonlyMap<string, string>;
};

export async function runPost({ uses, file, inputs, state }: PostStep, job: StepJob): Promise<WorkEnd> {
  const action = await actionOf(uses, job.state);
  const env = actionVariables(job, { inputs, state });
  if (action.runs.kind === "docker") return await runDocker(job, action, { entrypoint: file, inputs, env });
  return await runNode(job, action, file, { inputs, state });
}

export type ActionPorts = {
  readonly posts: PostStep[];
  /** Runs the steps of a composite action. */
  readonly inner: (
    steps: Extract<ActionRuns, { kind: "composite" }>["steps"],
    frame: Frame,
    signal: AbortSignal,
  ) => Promise<void>;
};

export const depthMax = 9;

export async function actionOf(uses: string, state: JobState): Promise<Action> {
  if (uses.startsWith("docker://")) return dockerAction(uses, state.machine.workspace, uses);
  return await readAction(isLocalUses(uses) ? localFolder(uses, state) : await state.machine.actionFolder(uses), uses);
}

function localFolder(uses: string, state: JobState): string {
  const folder = join(state.machine.workspace, uses.slice(uses.startsWith("$/") ? 2 : 0));
  const inside = relative(state.machine.workspace, folder);
  if (inside.startsWith("..") || isAbsolute(inside)) throw new ActionFault(`${uses} leads out of the workspace`);
  return folder;
}

export async function runAction(step: UsesStep, job: StepJob, ports: ActionPorts): Promise<WorkEnd> {
  const action = await actionOf(step.uses, job.state);
  const inputs = inputsOf(step, action, job);
  job.output.line("command", [`Run ${step.uses}`, ...shownInputs(step, inputs)].join("\n"));
  const { runs } = action;
  if (runs.kind === "composite") return await runComposite(step, action, runs.steps, { job, ports, inputs });
  const framed = { ...job, frame: actionFrame(job.frame, step, action) };
  const saved = job.state.savedBefore.get(job.frame.key) ?? new Map<string, string>();
  for (const [name, value] of saved) job.output.effects.state.set(name, value);
  const post = runs.kind === "docker" ? runs.postEntrypoint : runs.post;
  if (post !== undefined)
    ports.posts.push({
      name: `Post ${job.ref.name}`,
      if: runs.postIf,
      frame: framed.frame,
      env: job.env,
      uses: step.uses,
      file: post,
      inputs,
      state: job.output.effects.state,
    });
  if (runs.kind === "javascript") return await runNode(framed, action, runs.main, { inputs, state: saved });
  const env = actionVariables(framed, { inputs, state: saved });
  return await runDocker(framed, action, { entrypoint: runs.entrypoint, inputs, env });
}

/** What the step says, not the action's defaults. */
function shownInputs(step: UsesStep, inputs: ReadonlyMap<string, string>): readonly string[] {
  const given = step.with?.kind === "mapping" ? step.with.entries : [];
  const names = new Set(given.flatMap(({ key }) => (key.kind === "scalar" ? [String(key.value).toLowerCase()] : [])));
  return [...inputs].filter(([name]) => names.has(name.toLowerCase())).map(([name, value]) => `  ${name}: ${value}`);
}

/** The part of an action that runs before all steps; only actions from elsewhere have one. */
export async function runPre(step: UsesStep, action: Action, job: StepJob): Promise<WorkEnd> {
  const { runs } = action;
  const file = preOf(runs);
  if (file === undefined) return "success";
  const given = { inputs: inputsOf(step, action, job), state: new Map<string, string>() };
  job.state.savedBefore.set(job.frame.key, job.output.effects.state);
  const framed = { ...job, frame: actionFrame(job.frame, step, action) };
  if (runs.kind !== "docker") return await runNode(framed, action, file, given);
  const env = actionVariables(framed, given);
  return await runDocker(framed, action, { entrypoint: file, inputs: given.inputs, env });
}

/** What of an action runs before all steps. */
export function preOf(runs: ActionRuns): string | undefined {
  if (runs.kind === "composite") return undefined;
  return runs.kind === "docker" ? runs.preEntrypoint : runs.pre;
}

type NodeInput = { readonly inputs: ReadonlyMap<string, string>; readonly state: ReadonlyMap<string, string> };

async function runNode(job: StepJob, action: Action, file: string, { inputs, state }: NodeInput): Promise<WorkEnd> {
  const path = join(action.folder, file);
  if (!existsSync(path)) throw new ActionFault(`The action '${action.name}' has no file ${file}`);
  const program = job.state.inside ? job.state.inside.node : job.state.machine.node;
  if (program === undefined)
    throw new ActionFault(
      `The action '${action.name}' needs Node, which cannot run in the job's container: its image has none, and no glibc for ours`,
    );
  const env = actionVariables(job, { inputs, state });
  return await runCommand(job, { program, args: [path], folder: job.state.machine.workspace, env });
}

function actionVariables(job: StepJob, { inputs, state }: NodeInput): Readonly<Record<string, string>> {
  const env: Record<string, string> = { ...job.state.machine.actionEnv };
  for (const [name, value] of inputs) env[inputVariable(name)] = value;
  for (const [name, value] of state) env[`STATE_${name}`] = value;
  return env;
}

/** Where the steps of a composite action look for parts that run before all steps. */
export function frameBefore(step: UsesStep, action: Action, outer: Frame, state: JobState): Frame {
  const scope = state.scope(outer, state.envOf(outer));
  const inputs = inputsOf(step, action, { scope, state, output: { annotate() {} } });
  return { ...actionFrame(outer, step, action), depth: outer.depth + 1, inputs: new Dictionary(inputs) };
}

type CompositeInput = {
  readonly job: StepJob;
  readonly ports: ActionPorts;
  readonly inputs: ReadonlyMap<string, string>;
};

async function runComposite(
  step: UsesStep,
  action: Action,
  steps: Extract<ActionRuns, { kind: "composite" }>["steps"],
  { job, ports, inputs }: CompositeInput,
): Promise<WorkEnd> {
  if (job.frame.depth >= depthMax)
    throw new ActionFault(`${step.uses}: actions use one another more than ${depthMax} deep`);
  const frame: Frame = {
    ...actionFrame(job.frame, step, action),
    depth: job.frame.depth + 1,
    steps: new Dictionary(),
    inputs: new Dictionary(inputs),
    env: new Map([...job.frame.env, ...ownEnv(job)]),
    status: "success",
  };
  await ports.inner(steps, frame, job.signal);
  const scope = job.state.scope(frame, job.state.envOf(frame));
  for (const { name, value } of action.outputs)
    if (value) job.output.effects.outputs.set(name, templateText(value, scope));
  return job.signal.aborted ? "cancelled" : frame.status;
}

/** What the step itself sets, over what the job has: the steps inside see it. */
function ownEnv({ env, state }: StepJob): readonly (readonly [string, string])[] {
  return [...env].filter(([name, value]) => state.env.get(name) !== value);
}

function actionFrame(frame: Frame, step: UsesStep, action: Action): Frame {
  const github = new Dictionary(frame.github.entries());
  github.set("action_path", action.folder);
  const [path = "", reference = ""] = isLocalUses(step.uses) ? [] : step.uses.split("@");
  github.set("action_repository", path.split("/").slice(0, 2).join("/"));
  github.set("action_ref", reference);
  return { ...frame, github };
}

/** What `with` says, and the action's own defaults for the rest. */
function inputsOf(
  step: UsesStep,
  action: Action,
  { scope, output, state }: Pick<StepJob, "scope" | "state"> & { readonly output: Pick<StepJob["output"], "annotate"> },
): ReadonlyMap<string, string> {
  const given = step.with ? templateTexts(step.with, scope) : new Map<string, string>();
  const inputs = new Map<string, string>();
  const find = (name: string): string | undefined =>
    [...given.keys()].find((key) => key.toLowerCase() === name.toLowerCase());
  for (const { name, default: initial, deprecation } of action.inputs) {
    const key = find(name);
    if (key !== undefined && deprecation !== undefined)
      output.annotate({
        level: "warning",
        message: `Input '${name}' has been deprecated with message: ${deprecation}`,
      });
    if (key !== undefined) inputs.set(name, given.get(key) ?? "");
    else inputs.set(name, initial ? templateText(initial, { ...scope, contexts: withEnv(scope.contexts, state) }) : "");
  }
  const ofContainers = action.runs.kind === "docker" ? ["entrypoint", "args"] : [];
  const known = new Set([...action.inputs.map(({ name }) => name.toLowerCase()), ...ofContainers]);
  const unknown = [...given.keys()].filter((name) => !known.has(name.toLowerCase()));
  for (const name of [...ofContainers, ...unknown]) if (given.has(name)) inputs.set(name, given.get(name) ?? "");
  if (unknown.length > 0)
    output.annotate({
      level: "warning",
      message: `Unexpected input(s) ${unknown.map((name) => `'${name}'`).join(", ")}, valid inputs are [${[...known].join(", ")}]`,
    });
  return inputs;
}

function withEnv(contexts: Dictionary, state: JobState): Dictionary {
  return new Dictionary([...contexts.entries(), ["env", envContext(state.env)]]);
}
