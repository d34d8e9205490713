/** Pure: the record of a run as workflows and contexts. */
import { Fault } from "#base/fault.ts";
import { compileOnce } from "#doors/ci/workflow/compile/compile-once.ts";
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

export function workflowOf({ file, called = [] }: Pick<RunRecord, "file" | "called">): Workflow {
  const found = compileOnce(file, calledFrom(new Map(called.map((one) => [one.path, one]))));
  if (found.ok) return found.workflow;
  const why = found.problems.map(({ message }) => message).join("; ");
  throw new Fault("invalid", "compile the workflow", { file: file.path, why });
}
