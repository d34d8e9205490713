/** Follows the calls of other workflows, so far as their files are at hand (CI-61). */
import { textOf } from "#doors/ci/workflow/expression/value.ts";
import { type Problem, Problems, problemText } from "#doors/ci/workflow/problem.ts";
import { calledWorkflow } from "#doors/ci/workflow/schema/workflow.ts";
import { entryOf, type Node, stringOf } from "#doors/ci/workflow/yaml/node.ts";
import { type CompileOptions, type Reading, type SourceFile, workflowIn } from "./file.ts";
import type { CallJob, Called, Job, Workflow } from "./model.ts";
import { excessOver, type Permissions, permissionsOfPolicy } from "./permissions.ts";
import { nodeBytes } from "./size.ts";

export type Following = Reading & { readonly options: CompileOptions };

export function calledJobs(workflow: Workflow, following: Following): readonly Job[] {
  return new Follower(following).jobs(workflow, { depth: 1 });
}

type Level = { readonly depth: number; readonly allowed?: Permissions };

class Follower {
  readonly #following: Following;
  readonly #files = new Set<string>();
  readonly #read = new Map<SourceFile, NonNullable<ReturnType<typeof workflowIn>>>();
  #jobs = 0;
  #bytes = 0;

  constructor(following: Following) {
    this.#following = following;
  }

  jobs(workflow: Workflow, level: Level): readonly Job[] {
    const { problems, limits } = this.#following;
    const followed: Job[] = [];
    const own = workflow.permissions ?? level.allowed;
    for (const job of workflow.jobs.map((item) => withGranted(item, own))) {
      if (problems.count > 0) break;
      this.#jobs += 1;
      if (this.#jobs > limits.jobsMax) {
        problems.addAll([{ path: "", message: `The workflow may not contain more than ${limits.jobsMax} jobs` }]);
        break;
      }
      followed.push(job.kind === "call" ? this.#follow(job, level.depth) : job);
    }
    return followed;
  }

  #follow(job: CallJob, depth: number): CallJob {
    const { problems, limits, options } = this.#following;
    if (!options.called) return job;
    if (depth > limits.calledDepthMax) {
      problems.addAll([{ path: "", message: `Nested reusable workflow depth exceeded ${limits.calledDepthMax}.` }]);
      return job;
    }
    const file = options.called(job.uses, job.path);
    if (file === "elsewhere") return job;
    if (!file) return this.#fail(job, `The workflow '${job.uses}' was not found`);
    this.#files.add(file.path);
    if (this.#files.size > limits.calledFilesMax)
      return this.#fail(job, `A workflow may call at most ${limits.calledFilesMax} different files`);
    const inner = new Problems(file.path);
    // a file that is called often is read once
    const read = this.#read.get(file) ?? workflowIn(file, calledWorkflow, { problems: inner, limits });
    if (read) this.#read.set(file, read);
    if (read) this.#bytes += nodeBytes(read.root);
    if (this.#bytes > limits.resultBytesMax) inner.addAll([{ path: "", message: "Maximum object size exceeded" }]);
    if (!read || inner.count > 0) return this.#failInside(job, inner.found);
    const called = definitionsOf(read.workflow, read.root);
    this.#checkCall(job, called, entryOf(read.root, "on"));
    this.#checkPermissions(job, read.workflow, job.permissions);
    if (problems.count > 0) return job;
    const allowed = job.permissions;
    const jobs = this.jobs(read.workflow, { depth: depth + 1, ...(allowed && { allowed }) });
    return { ...job, called: { ...called, workflow: { ...read.workflow, jobs } } };
  }

  #fail(job: CallJob, message: string): CallJob {
    this.#following.problems.addAll([{ path: job.path, at: job.usesAt, message }]);
    return job;
  }

  #failInside(job: CallJob, inside: readonly Problem[]): CallJob {
    const prefix = problemText({ path: job.path, at: job.usesAt, message: "Error from called workflow" });
    for (const problem of inside) {
      const message = `In ${prefix} ${job.uses}: ${insideText(problem)}`;
      this.#following.problems.addAll([{ path: "", message }]);
    }
    return job;
  }

  #checkCall(job: CallJob, called: Called, on: Node | undefined): void {
    const { problems } = this.#following;
    const isCallable = stringOf(on) === "workflow_call" || entryOf(on, "workflow_call") || listHas(on, "workflow_call");
    if (!isCallable) this.#fail(job, "workflow_call key is not defined in the referenced workflow.");
    const add = (problem: { readonly at: Node["at"]; readonly message: string }): void =>
      problems.addAll([{ path: job.path, ...problem }]);
    checkInputs(job, called, add);
    if (job.secrets !== "inherit") checkSecrets(job, called, add);
  }

  #checkPermissions(job: CallJob, workflow: Workflow, granted: Permissions | undefined): void {
    const allowed = granted ?? permissionsOfPolicy(this.#following.options.permissionsPolicy ?? "Write");
    const complain = (who: string, requested: Permissions | undefined): void => {
      const excess = requested && excessOver(requested, allowed);
      if (!excess) return;
      const message =
        `Error calling workflow '${job.uses}'. The ${who} is requesting '${excess.requested}', ` +
        `but is only allowed '${excess.allowed}'.`;
      this.#following.problems.addAll([{ path: job.path, at: job.at, message }]);
    };
    complain(`workflow '${job.uses}'`, workflow.permissions);
    for (const nested of workflow.jobs) complain(`nested job '${nameOf(nested)}'`, nested.permissions);
  }
}

function insideText(problem: Problem): string {
  return problem.path === "" ? problem.message : problemText(problem);
}

function listHas(on: Node | undefined, name: string): boolean {
  return on?.kind === "sequence" && on.items.some((item) => stringOf(item) === name);
}

const nameOf = (job: Job): string => (job.name?.kind === "scalar" ? textOf(job.name.value) : job.id);

/** Jobs that say nothing have what their workflow has, or what the caller granted. */
function withGranted(job: Job, granted: Permissions | undefined): Job {
  return job.permissions || !granted ? job : { ...job, permissions: granted };
}

function definitionsOf(workflow: Workflow, root: Node): Called {
  const call = entryOf(entryOf(root, "on"), "workflow_call");
  const inputs = entryOf(call, "inputs");
  const secrets = entryOf(call, "secrets");
  const outputs = entryOf(call, "outputs");
  return { workflow, ...(inputs && { inputs }), ...(secrets && { secrets }), ...(outputs && { outputs }) };
}

type Complain = (problem: { readonly at: Node["at"]; readonly message: string }) => void;

type Parameter = { readonly name: string; readonly value: Node };

function parametersOf(node: Node | undefined): readonly Parameter[] {
  if (node?.kind !== "mapping") return [];
  return node.entries.flatMap(({ key, value }) => (key.kind === "scalar" ? [{ name: textOf(key.value), value }] : []));
}

const sameName = (left: string, right: string): boolean => left.toLowerCase() === right.toLowerCase();

const isRequired = (definition: Node): boolean => {
  const required = entryOf(definition, "required");
  return required?.kind === "scalar" && required.value === true;
};

function checkInputs(job: CallJob, called: Called, complain: Complain): void {
  const given = parametersOf(job.with);
  const defined = parametersOf(called.inputs);
  for (const { name, value: definition } of defined) {
    const input = given.find((parameter) => sameName(parameter.name, name));
    const type = stringOf(entryOf(definition, "type"));
    for (const value of [entryOf(definition, "default"), input?.value])
      if (value?.kind === "scalar" && !isOfType(value.value, type))
        complain({ at: value.at, message: `Unexpected value '${textOf(value.value)}'` });
    if (!input && isRequired(definition))
      complain({ at: job.usesAt, message: `Input ${name} is required, but not provided while calling.` });
  }
  checkDefined("input", given, defined, complain);
}

function isOfType(value: null | boolean | number | string, type: string | undefined): boolean {
  if (type === "boolean") return typeof value === "boolean";
  if (type === "number") return typeof value === "number";
  return true;
}

function checkSecrets(job: CallJob, called: Called, complain: Complain): void {
  const given = job.secrets === "inherit" ? [] : parametersOf(job.secrets);
  const defined = parametersOf(called.secrets);
  for (const { name, value } of defined)
    if (isRequired(value) && !given.some((parameter) => sameName(parameter.name, name)))
      complain({ at: job.usesAt, message: `Secret ${name} is required, but not provided while calling.` });
  checkDefined("secret", given, defined, complain);
}

function checkDefined(
  kind: string,
  given: readonly Parameter[],
  defined: readonly Parameter[],
  complain: Complain,
): void {
  for (const { name, value } of given)
    if (!defined.some((definition) => sameName(definition.name, name)))
      complain({ at: value.at, message: `Invalid ${kind}, ${name} is not defined in the referenced workflow.` });
}
