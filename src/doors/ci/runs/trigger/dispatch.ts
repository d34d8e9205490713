/** A workflow that is started by hand (CI-59). */
import { basename } from "node:path";
import { Fault } from "#base/fault.ts";
import type { Repository } from "#sources/book.ts";
import type { Order, Submitted } from "#shard/client/client.ts";
import { compileOnce } from "#doors/ci/workflow/compile/compile-once.ts";
import type { Workflow } from "#doors/ci/workflow/compile/model.ts";
import type { SourceFile } from "#doors/ci/workflow/compile/file.ts";
import { type Dictionary, textOf } from "#doors/ci/workflow/expression/value.ts";
import { problemText } from "#doors/ci/workflow/problem.ts";
import { labelsIn } from "#doors/ci/lint/lint.ts";
import { dispatchInputs } from "#doors/ci/local/event.ts";
import { foreignOf } from "./called-files.ts";
import { workflowsOf } from "./files.ts";
import { startRun } from "#doors/ci/runs/start.ts";
import type { TriggerPorts } from "./trigger-event.ts";

export type Dispatch = {
  readonly record: Repository;
  /** The file's name, or its path. */
  readonly workflow: string;
  readonly ref?: string | undefined;
  readonly inputs: Readonly<Record<string, string>>;
  readonly actor: string;
  readonly isTrusted: boolean;
  readonly key?: string;
  readonly whenEnded?: Order["whenEnded"];
};

/** With the labels that its jobs ask for, as far as the file says them. */
export async function dispatch(
  ports: TriggerPorts,
  request: Dispatch,
): Promise<Submitted & { readonly labels: readonly string[] }> {
  const { record, workflow, ref, inputs, actor, isTrusted, key, whenEnded } = request;
  const { sources } = ports;
  const commit = await sources.copies.resolve(record, ref);
  const files = await workflowsOf(sources, record, commit.sha);
  const file = fileNamed(files, workflow);
  if ((await ports.switches.disabled(record)).has(file.path))
    throw new Fault("invalid", "start the workflow", {
      workflow: file.path,
      why: "it is disabled",
      try: `millrace ci workflows enable ${basename(file.path)}`,
    });
  const compiled = workflowOf(file);
  const typed = inputsOf(compiled, inputs);
  const submitted = await startRun(ports, {
    tenant: record.tenant,
    repository: record.name,
    commit,
    files,
    foreign: foreignOf(sources, record.tenant),
    path: file.path,
    event: { name: "workflow_dispatch", payload: { inputs: textInputs(typed), ref: commit.ref, workflow: file.path } },
    inputs: typed,
    actor,
    isTrusted,
    whenEnded,
    ...(key !== undefined && { key, payload: JSON.stringify([record.name, workflow, ref ?? "", inputs]) }),
  });
  const runsOn = compiled.jobs.flatMap((job) => (job.kind === "job" ? [...labelsIn(job.runsOn)] : []));
  return { ...submitted, labels: [...new Set(runsOn.map(({ label }) => label.toLowerCase()))] };
}

function fileNamed(files: readonly SourceFile[], word: string): SourceFile {
  const named = files.filter(
    ({ path }) => path === word || basename(path) === word || basename(path).replace(/\.ya?ml$/, "") === word,
  );
  if (named[0]) return named[0];
  const known = files.map(({ path }) => basename(path)).join(", ");
  throw new Fault("not-found", "find the workflow", { workflow: word, known: known === "" ? "none" : known });
}

function workflowOf(file: SourceFile): Workflow {
  const compiled = compileOnce(file);
  if (compiled.ok) return compiled.workflow;
  const why = compiled.problems.map((problem) => problemText(problem)).join("; ");
  throw new Fault("invalid", "compile the workflow", { why });
}

function inputsOf({ on, path }: Workflow, given: Readonly<Record<string, string>>): Dictionary {
  if (!Object.hasOwn(on.events, "workflow_dispatch"))
    throw new Fault("invalid", "start the workflow", {
      workflow: path,
      why: "it does not run on workflow_dispatch",
      try: "add `workflow_dispatch:` below `on:`",
    });
  const read = dispatchInputs(on.dispatchInputs, given);
  if ("problem" in read) throw new Fault("invalid", "start the workflow", { why: read.problem });
  return read.inputs;
}

const textInputs = (inputs: Dictionary): Readonly<Record<string, string>> =>
  Object.fromEntries([...inputs.entries()].map(([name, value]) => [name, textOf(value)]));
