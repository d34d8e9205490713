/** The reader cases of others as data, and our workflows in the words of their model, to compare the two. */
import { parse as parseYaml } from "yaml";
import type { Limits } from "#doors/ci/workflow/limits.ts";
import { problemText } from "#doors/ci/workflow/problem.ts";
import type { Node } from "#doors/ci/workflow/yaml/node.ts";
import { type Compiled, compile } from "#doors/ci/workflow/compile/compile.ts";
import type { Filters, Triggers } from "#doors/ci/workflow/compile/triggers.ts";
import type { Job, Step, Workflow } from "#doors/ci/workflow/compile/model.ts";
import type { PermissionsPolicy } from "#doors/ci/workflow/compile/permissions.ts";

export type ReaderCase = {
  readonly name: string;
  readonly options: Readonly<Record<string, unknown>>;
  readonly text: string;
  readonly called: ReadonlyMap<string, string>;
  readonly expected: unknown;
};

export function readerCase(name: string, text: string): ReaderCase {
  const [options = "", workflow = "", ...rest] = text.split(/\r?\n---\r?\n/);
  const called = new Map<string, string>();
  for (let at = 0; at + 1 < rest.length - 1; at += 2) called.set(rest[at] ?? "", rest[at + 1] ?? "");
  return {
    name,
    options: (parseYaml(options) ?? {}) as Readonly<Record<string, unknown>>,
    text: workflow,
    called,
    expected: JSON.parse(rest.at(-1) ?? "{}") as unknown,
  };
}

export function outcomeOf({ name, options, text, called }: ReaderCase): unknown {
  const skips = options["skip-reusable-workflows"] === true;
  const compiled = compile(
    { path: `.github/workflows/${name}`, text },
    {
      limits: limitsIn(options),
      permissionsPolicy: (options["permissions-policy"] as PermissionsPolicy | undefined) ?? "Write",
      ...(!skips && {
        called: (uses: string) => {
          const found = called.get(uses);
          return found === undefined ? undefined : { path: uses, text: found };
        },
      }),
    },
  );
  return modelOf(compiled, options);
}

function limitsIn(options: Readonly<Record<string, unknown>>): Partial<Limits> {
  const limit = (name: string, field: keyof Limits): Partial<Limits> =>
    typeof options[name] === "number" ? { [field]: options[name] } : {};
  return {
    areAnchorsAllowed: false,
    ...limit("max-depth", "depthMax"),
    ...limit("max-file-size", "fileLengthMax"),
    ...limit("max-result-size", "resultBytesMax"),
    ...limit("max-job-limit", "jobsMax"),
    ...limit("max-nested-reusable-workflows-depth", "calledDepthMax"),
  };
}

function modelOf(compiled: Compiled, options: Readonly<Record<string, unknown>>): unknown {
  if (!compiled.ok) return { errors: compiled.problems.map((problem) => ({ Message: problemText(problem) })) };
  const files = filesOf(compiled.workflow);
  const writer = new Writer(options["include-source"] === true ? files : undefined);
  const skip = (options["skip"] ?? []) as readonly string[];
  const showsEvents = skip.some((word) => /^go$/i.test(word)) && skip.some((word) => /^c#$/i.test(word));
  return writer.workflow(compiled.workflow, showsEvents);
}

function filesOf(workflow: Workflow): readonly string[] {
  const below = workflow.jobs.flatMap((job) => (job.kind === "call" && job.called ? filesOf(job.called.workflow) : []));
  return [...new Set([workflow.path, ...below])];
}

class Writer {
  readonly #files: readonly string[] | undefined;
  #path = "";

  constructor(files: readonly string[] | undefined) {
    this.#files = files;
  }

  workflow(workflow: Workflow, showsEvents: boolean): unknown {
    this.#path = workflow.path;
    return defined({
      events: showsEvents ? eventsOf(workflow.on) : undefined,
      "input-types": showsEvents ? undefined : inputTypesOf(workflow),
      permissions: knownThen(workflow.permissions),
      env: this.node(workflow.env),
      defaults: this.node(workflow.defaults),
      concurrency: this.node(workflow.concurrency),
      jobs: workflow.jobs.map((job) => this.job(job)),
      "file-table": this.#files,
    });
  }

  node(node: Node | undefined): unknown {
    if (!node) return undefined;
    const place = this.#files && { file: this.#files.indexOf(this.#path) + 1, line: node.at.line, col: node.at.column };
    switch (node.kind) {
      case "scalar":
        return this.#scalar(node.value, place);
      case "expression":
        return { type: 3, ...place, expr: node.expression };
      case "insert":
        return { type: 4, ...place, directive: "insert" };
      case "sequence":
        return { type: 1, ...place, seq: node.items.map((item) => this.node(item)) };
      default:
        return {
          type: 2,
          ...place,
          map: node.entries.map(({ key, value }) => ({ Key: this.node(key), Value: this.node(value) })),
        };
    }
  }

  #scalar(value: null | boolean | number | string, place: object | undefined): unknown {
    const plain = typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
    if (!place) return plain;
    if (typeof value === "string") return { type: 0, ...place, lit: value };
    if (typeof value === "boolean") return { type: 5, ...place, bool: value };
    if (typeof value === "number") return { type: 6, ...place, num: plain };
    return { type: 7, ...place };
  }

  job(job: Job): unknown {
    this.#path = job.path;
    const id = this.node({ kind: "scalar", at: job.at, value: job.id });
    const needs = job.needs.map((need) => this.node({ kind: "scalar", at: need.at, value: need.id }));
    const common = {
      id,
      name: job.name ? this.node(job.name) : id,
      needs: job.kind === "call" || needs.length > 0 ? needs : undefined,
      if: this.#condition(job.if),
      permissions: knownThen(job.permissions),
      strategy: this.node(job.strategy),
      concurrency: this.node(job.concurrency),
    };
    if (job.kind === "call") return this.#call(job, common);
    return defined({
      type: "job",
      ...common,
      "continue-on-error": this.node(job.continueOnError),
      "timeout-minutes": this.node(job.timeoutMinutes),
      "cancel-timeout-minutes": this.node(job.cancelTimeoutMinutes),
      container: this.node(job.container),
      services: this.node(job.services),
      env: this.node(job.env),
      environment: this.node(job.environment),
      outputs: this.node(job.outputs),
      defaults: this.node(job.defaults),
      "runs-on": this.node(job.runsOn),
      steps: job.steps.length > 0 ? job.steps.map((step) => this.#step(step)) : undefined,
      snapshot: this.node(job.snapshot),
    });
  }

  #call(job: Extract<Job, { kind: "call" }>, common: object): unknown {
    const inside = job.called?.workflow.permissions;
    const own = {
      type: "reusableWorkflowJob",
      ...common,
      ...(inside && { permissions: knownThen(inside) }),
      ref: this.node({ kind: "scalar", at: job.usesAt, value: job.uses }),
      "input-values": this.node(job.with),
      "secret-values": job.secrets === "inherit" ? undefined : this.node(job.secrets),
      "inherit-secrets": job.secrets === "inherit" ? true : undefined,
    };
    this.#path = job.called?.workflow.path ?? this.#path;
    return defined({
      ...own,
      "input-definitions": this.node(job.called?.inputs),
      "secret-definitions": this.node(job.called?.secrets),
      outputs: this.node(job.called?.outputs),
      defaults: this.node(job.called?.workflow.defaults),
      env: this.node(job.called?.workflow.env),
      jobs: (job.called?.workflow.jobs ?? []).map((inner) => this.job(inner)),
    });
  }

  #condition(condition: { readonly expression: string }): unknown {
    return { type: 3, expr: condition.expression };
  }

  #step(step: Step): unknown {
    if (step.kind === "parallel") return { parallel: step.steps.map((inner) => this.#step(inner)) };
    const common = {
      id: step.id,
      name: this.node(step.name),
      "continue-on-error": this.node(step.continueOnError),
    };
    if (step.kind === "wait") return defined({ ...common, wait: step.ids });
    if (step.kind === "wait-all") return defined({ ...common, "wait-all": true });
    if (step.kind === "cancel") return defined({ ...common, cancel: step.target });
    const work = {
      ...common,
      if: this.#condition(step.if),
      "timeout-minutes": this.node(step.timeoutMinutes),
      env: this.node(step.env),
      background: step.isBackground ? true : undefined,
    };
    if (step.kind === "uses")
      return defined({ ...work, uses: this.node(textNode(step.uses, step.usesAt)), with: this.node(step.with) });
    return defined({
      ...work,
      "working-directory": this.node(step.workingDirectory),
      shell: this.node(step.shell),
      run: this.node(step.run),
    });
  }
}

const textNode = (value: string, at: Node["at"]): Node => ({ kind: "scalar", at, value });

const defined = (value: object): object => JSON.parse(JSON.stringify(value)) as object;

/** Scopes that are younger than the cases. */
function knownThen(permissions: object | undefined): object | undefined {
  const young = new Set(["artifact-metadata", "attestations"]);
  return permissions && Object.fromEntries(Object.entries(permissions).filter(([scope]) => !young.has(scope)));
}

function inputTypesOf({ on }: Workflow): unknown {
  const types = on.dispatchInputs.map(({ name, type }) => [name, type] as const);
  return types.length > 0 ? Object.fromEntries(types) : undefined;
}

function eventsOf(on: Triggers): unknown {
  const events = Object.entries(on.events).map(([name, filters]) => [name, filterWords(filters)] as const);
  const all = Object.fromEntries(events) as Record<string, unknown>;
  const inputs = on.dispatchInputs.map(
    ({ name, isRequired, ...input }) => [name, { ...input, ...(isRequired && { required: true }) }] as const,
  );
  if (inputs.length > 0) all["workflow_dispatch"] = { inputs: Object.fromEntries(inputs) };
  if (on.call?.kind === "mapping") all["workflow_call"] = plainNode(on.call);
  if (on.schedules.length > 0) all["schedule"] = on.schedules;
  return all;
}

function plainNode(node: Node): unknown {
  if (node.kind === "scalar") return node.value;
  if (node.kind === "sequence") return node.items.map((item) => plainNode(item));
  if (node.kind !== "mapping") return undefined;
  const pairs = node.entries.map(
    ({ key, value }) => [key.kind === "scalar" ? String(key.value) : "", plainNode(value)] as const,
  );
  return Object.fromEntries(pairs);
}

function filterWords(filters: Filters): unknown {
  const { branchesIgnore, tagsIgnore, pathsIgnore, ...rest } = filters;
  return defined({
    ...rest,
    "branches-ignore": branchesIgnore,
    "tags-ignore": tagsIgnore,
    "paths-ignore": pathsIgnore,
  });
}
