/** From the text of a workflow file to a typed workflow, or to what is wrong with it and where. Pure. */
import { standardLimits } from "#doors/ci/workflow/limits.ts";
import { type Problem, Problems } from "#doors/ci/workflow/problem.ts";
import { workflow as workflowDefinition } from "#doors/ci/workflow/schema/workflow.ts";
import { calledJobs } from "./called.ts";
import { type CompileOptions, type SourceFile, workflowIn } from "./file.ts";
import type { Workflow } from "./model.ts";

export type Compiled =
  | { readonly ok: true; readonly workflow: Workflow }
  | { readonly ok: false; readonly problems: readonly Problem[] };

export function compile(file: SourceFile, options: CompileOptions = {}): Compiled {
  const limits = { ...standardLimits, ...options.limits };
  const problems = new Problems(file.path);
  const workflow = workflowIn(file, workflowDefinition, { problems, limits })?.workflow;
  if (!workflow || problems.count > 0) return { ok: false, problems: problems.found };
  const jobs = calledJobs(workflow, { problems, limits, options });
  if (problems.count > 0) return { ok: false, problems: problems.found };
  return { ok: true, workflow: { ...workflow, jobs } };
}
