/** Pure: the record of a run as workflows and contexts. */
import { createHash } from "node:crypto";
import { Fault } from "#base/fault.ts";
import { compile } from "#doors/ci/workflow/compile/compile.ts";
import type { Workflow } from "#doors/ci/workflow/compile/model.ts";
import { type Dictionary, valueOf } from "#doors/ci/workflow/expression/value.ts";
import type { Frame } from "#doors/ci/workflow/plan/job-plan.ts";
import { calledFrom } from "./local/workflows.ts";
import type { RunRecord } from "./runs/record.ts";

export function frameOf(record: RunRecord, workflow: Workflow): Frame {
  return {
    workflow,
    github: valueOf(record.github) as Dictionary,
    vars: valueOf(record.vars) as Dictionary,
    inputs: valueOf(record.inputs) as Dictionary,
  };
}

/** Each job of a run is planned and run from the same files: those of the last few runs are compiled once. */
const compiledMax = 64;
const cachedBytesMax = 256 * 1024;
const compiledBefore = new Map<string, Workflow>();

export function workflowOf({ file, called = [] }: Pick<RunRecord, "file" | "called">): Workflow {
  const files = JSON.stringify([file, ...called]);
  if (files.length > cachedBytesMax) return compiled({ file, called });
  const key = createHash("sha256").update(files).digest("base64");
  const known = compiledBefore.get(key) ?? compiled({ file, called });
  compiledBefore.delete(key); // the latest is last
  compiledBefore.set(key, known);
  const [oldest] = compiledBefore.keys();
  if (compiledBefore.size > compiledMax && oldest !== undefined) compiledBefore.delete(oldest);
  return known;
}

function compiled({ file, called = [] }: Pick<RunRecord, "file" | "called">): Workflow {
  const found = compile(file, { called: calledFrom(new Map(called.map((one) => [one.path, one]))) });
  if (found.ok) return found.workflow;
  const why = found.problems.map(({ message }) => message).join("; ");
  throw new Fault("invalid", "compile the workflow", { file: file.path, why });
}
