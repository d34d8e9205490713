/** What passes between a job that calls a workflow and the workflow that it calls (CI-61). Pure. */
import type { CallJob } from "#doors/ci/workflow/compile/model.ts";
import { Dictionary, isTruthy, textOf, type Value } from "#doors/ci/workflow/expression/value.ts";
import { entryOf, type Node, stringOf } from "#doors/ci/workflow/yaml/node.ts";
import type { Frame, JobEnd, JobResult } from "./job-plan.ts";
import { TemplateFault, templateText, templateValue } from "./template.ts";

/** The called workflow as a level of its own; `contexts` are those of the calling cell. */
export function calledFrame(job: CallJob, frame: Frame, contexts: Dictionary): Frame {
  if (!job.called) throw new TemplateFault(`The workflow '${job.uses}' was not found`, job.usesAt);
  return { ...frame, workflow: job.called.workflow, inputs: calledInputs(job, contexts) };
}

/** Caller's values, or defaults, in the types that the called workflow says. */
function calledInputs(job: CallJob, contexts: Dictionary): Dictionary {
  const given = job.with ? templateValue(job.with, { contexts }) : null;
  const values = given instanceof Dictionary ? given : new Dictionary();
  const inputs = new Dictionary();
  const definitions = job.called?.inputs;
  for (const { key, value } of definitions?.kind === "mapping" ? definitions.entries : []) {
    const name = key.kind === "scalar" ? textOf(key.value) : "";
    const initial = entryOf(value, "default");
    const input = values.get(name) ?? (initial ? templateValue(initial, { contexts }) : undefined);
    inputs.set(name, typedInput({ name, type: stringOf(entryOf(value, "type")) ?? "string" }, input, job));
  }
  return inputs;
}

/** Known only now: what an expression came to must be of the input's type. */
function typedInput(
  { name, type }: { readonly name: string; readonly type: string },
  value: Value | undefined,
  { usesAt }: CallJob,
): Value {
  if (value !== undefined && value !== null && typeof value === "object")
    throw new TemplateFault(`The input ${name} must be a ${type}`, usesAt);
  if (type === "boolean") {
    if (typeof value === "string" && !["true", "false", ""].includes(value))
      throw new TemplateFault(`The input ${name} must be a boolean, and is '${value}'`, usesAt);
    return value !== undefined && value !== "false" && isTruthy(value);
  }
  if (type !== "number") return value === undefined ? "" : textOf(value);
  const number = value === undefined ? 0 : Number(textOf(value));
  if (Number.isNaN(number)) throw new TemplateFault(`The input ${name} must be a number`, usesAt);
  return number;
}

/** All of the caller's secrets, or those that it names; the token comes along. */
export function calledSecrets(
  job: CallJob,
  contexts: Dictionary,
  secrets: ReadonlyMap<string, string>,
): ReadonlyMap<string, string> {
  if (job.secrets === "inherit") return secrets;
  const given =
    job.secrets &&
    templateValue(job.secrets, {
      contexts: new Dictionary([...contexts.entries(), ["secrets", new Dictionary(secrets)]]),
    });
  const own = new Map(
    given instanceof Dictionary ? [...given.entries()].map(([name, value]) => [name, textOf(value)]) : [],
  );
  const token = secrets.get("GITHUB_TOKEN");
  return token === undefined ? own : new Map([...own, ["GITHUB_TOKEN", token]]);
}

/** `jobs` of the called workflow are what its outputs are made of. */
export function calledOutputs(
  node: Node | undefined,
  frame: Frame,
  endOf: (id: string) => JobEnd | undefined,
): ReadonlyMap<string, string> {
  const outputs = new Map<string, string>();
  const jobs = new Dictionary(
    frame.workflow.jobs.map(({ id }) => {
      const end = endOf(id);
      const about = new Dictionary([
        ["result", end?.result ?? null],
        ["outputs", new Dictionary(end?.outputs ?? [])],
      ]);
      return [id, about] as const;
    }),
  );
  const contexts = new Dictionary([
    ["github", frame.github],
    ["inputs", frame.inputs],
    ["vars", frame.vars],
    ["jobs", jobs],
  ]);
  for (const { key, value } of node?.kind === "mapping" ? node.entries : []) {
    const output = entryOf(value, "value");
    if (output) outputs.set(key.kind === "scalar" ? textOf(key.value) : "", templateText(output, { contexts }));
  }
  return outputs;
}

/** A workflow is as good as the jobs in it. */
export function resultOf(ends: readonly JobResult[]): JobResult {
  if (ends.includes("failure")) return "failure";
  if (ends.includes("cancelled")) return "cancelled";
  return ends.every((end) => end === "skipped") ? "skipped" : "success";
}
