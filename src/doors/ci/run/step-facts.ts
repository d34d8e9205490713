/** What expressions say about a step or a job, apart from running it. */
import type { RunStep, UsesStep } from "#doors/ci/workflow/compile/model.ts";
import type { Scope } from "#doors/ci/workflow/expression/evaluate.ts";
import { TemplateFault, templateBoolean, templateText, templateTexts } from "#doors/ci/workflow/plan/template.ts";
import { type JobState, merged } from "./job-state.ts";
import { ActionFault } from "./manifest.ts";
import { ShellFault } from "./shells.ts";

export type WorkStep = RunStep | UsesStep;

/** Mistakes of workflows and actions, as opposed to ours. */
export const isKnown = (error: unknown): error is Error =>
  error instanceof TemplateFault || error instanceof ActionFault || error instanceof ShellFault;

function quietly<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (!isKnown(error)) throw error;
    return undefined;
  }
}

/** Asked only after a failure; an error in it leaves the step failed (CI-9). */
export function mayFail(step: WorkStep, scope: Scope): boolean {
  const node = step.continueOnError;
  return node ? (quietly(() => templateBoolean(node, scope)) ?? false) : false;
}

export function ownEnv(step: WorkStep, scope: Scope): ReadonlyMap<string, string> {
  return step.env ? templateTexts(step.env, scope) : new Map();
}

export function stepName(step: WorkStep, scope: Scope): string {
  const { name } = step;
  const given = name && quietly(() => templateText(name, scope));
  if (given !== undefined && given !== "") return given;
  if (step.kind === "uses") return `Run ${step.uses}`;
  const text = quietly(() => templateText(step.run, scope)) ?? "";
  return `Run ${text.trim().split(/\r?\n/)[0] ?? ""}`.trim();
}

const outputBytesMax = 1024 * 1024;

/** CI-52: what looks like a secret is not handed on. */
export function jobOutputs(
  state: JobState,
  note: (level: "error" | "warning", text: string) => void,
): ReadonlyMap<string, string> {
  const outputs = new Map<string, string>();
  const node = state.spec.outputs;
  if (!node) return outputs;
  let sizeBytes = 0;
  for (const [name, value] of evaluated(state, note)) {
    if (value === "") continue;
    sizeBytes += (name.length + value.length) * 2;
    if (state.masks.mask(value) !== value) note("warning", `Skip output '${name}' since it may contain secret.`);
    else if (sizeBytes > outputBytesMax)
      note("error", `Skip output '${name}': a job's outputs may have 1 MB together.`);
    else outputs.set(name, value);
  }
  return outputs;
}

const urlLengthMax = 2_000;

/** CI-63: the address of what it deployed, when its steps are over. Only addresses of pages are taken. */
export function environmentUrl(
  state: JobState,
  note: (level: "error" | "warning", text: string) => void,
): string | undefined {
  const node = state.spec.environment?.url;
  if (!node) return undefined;
  try {
    const text = state.masks.mask(templateText(node, state.scope(state.root, state.env)).trim());
    if (text === "") return undefined;
    if (/^https?:\/\//.test(text) && URL.canParse(text) && text.length <= urlLengthMax) return text;
    note("warning", "The environment's url is no http address, and was left out.");
  } catch (error) {
    if (!isKnown(error)) throw error;
    note("warning", error.message);
  }
  return undefined;
}

function evaluated(
  state: JobState,
  note: (level: "error" | "warning", text: string) => void,
): ReadonlyMap<string, string> {
  try {
    return state.spec.outputs ? templateTexts(state.spec.outputs, state.scope(state.root, state.env)) : new Map();
  } catch (error) {
    if (!isKnown(error)) throw error;
    note("error", error.message);
    state.root.status = merged(state.root.status, "failure");
    return new Map();
  }
}
