/** Warnings about workflows that compile, but are dangerous or cannot do what their author wants. Pure. */
import { FunctionCall } from "@actions/expressions/ast";
import { nearest } from "#base/nearest.ts";
import { compile } from "#doors/ci/workflow/compile/compile.ts";
import type { CompileOptions, SourceFile } from "#doors/ci/workflow/compile/file.ts";
import { isLocalUses } from "#doors/ci/workflow/compile/ids.ts";
import { calledPath, foreignFile } from "#doors/ci/local/workflows.ts";
import type { CallJob, Job, NormalJob, Step, UsesStep, Workflow } from "#doors/ci/workflow/compile/model.ts";
import { partsOf, pathOf } from "#doors/ci/workflow/expression/parse.ts";
import { textOf } from "#doors/ci/workflow/expression/value.ts";
import type { Place } from "#doors/ci/workflow/problem.ts";
import { entryOf, type Node, stringOf } from "#doors/ci/workflow/yaml/node.ts";
import { aroundSteps, expressionsIn, type Found, inStep } from "./expressions.ts";
import { type Finding, findingOf, type Rule } from "./finding.ts";
import { labelsKnown } from "./labels.ts";
import { neverHolds, isText } from "./never.ts";
import { holdsUntrusted, isUntrusted } from "./untrusted.ts";

export type LintOptions = CompileOptions & {
  /** Labels of runners of one's own. */
  readonly labels?: readonly string[];
  /** Repositories whose workflows can be called, in lower case; left out: none is known. */
  readonly repositories?: ReadonlySet<string>;
};

export function lint(file: SourceFile, options: LintOptions = {}): readonly Finding[] {
  const called: CompileOptions["called"] = (uses, caller) => {
    const found = options.called?.(uses, caller);
    return found ?? (foreignFile(calledPath(uses, caller) ?? "") || !options.called ? "elsewhere" : undefined);
  };
  const compiled = compile(file, { ...options, called });
  if (!compiled.ok) return compiled.problems.map((problem) => findingOf(problem));
  return new Linter(compiled.workflow, options).findings();
}

class Linter {
  readonly #workflow: Workflow;
  readonly #labels: readonly string[];
  readonly #repositories: ReadonlySet<string>;
  readonly #found: Finding[] = [];
  readonly #never = new Set<string>();

  constructor(workflow: Workflow, options: LintOptions) {
    this.#workflow = workflow;
    this.#labels = [...labelsKnown, ...(options.labels ?? [])];
    this.#repositories = options.repositories ?? new Set();
  }

  findings(): readonly Finding[] {
    for (const job of this.#workflow.jobs) {
      this.#condition(job);
      this.#needs(job);
      if (job.kind === "call") this.#call(job);
      else this.#job(job);
    }
    return this.#found.toSorted(
      (a, b) => (a.at?.line ?? 0) - (b.at?.line ?? 0) || (a.at?.column ?? 0) - (b.at?.column ?? 0),
    );
  }

  #warn(rule: Rule, at: Place | undefined, message: string): void {
    this.#found.push({ rule, level: "warning", path: this.#workflow.path, ...(at && { at }), message });
  }

  #call(job: CallJob): void {
    this.#pinned(job.uses, job.usesAt, "workflow");
    const repository = foreignFile(job.uses)?.repository;
    if (repository === undefined || job.called || this.#repositories.has(repository.toLowerCase())) return;
    this.#warn(
      "unknown-repository",
      job.usesAt,
      `the workflow ${job.uses} is not known here, so what is given to it is not checked; a node needs its repository: millrace ci add ${repository} <url>`,
    );
  }

  #job(job: NormalJob): void {
    for (const { label, at } of labelsIn(job.runsOn)) this.#label(label, at);
    const ids = new Set<string>();
    for (const step of job.steps) {
      for (const found of inStep(step)) this.#steps(found, ids);
      this.#step(step);
      if (step.kind === "parallel") for (const inner of step.steps) ids.add(inner.id.toLowerCase());
      else ids.add(step.id.toLowerCase());
    }
    for (const found of expressionsIn(job.outputs)) this.#steps(found, ids);
  }

  #step(step: Step): void {
    if (step.kind === "parallel") for (const inner of step.steps) this.#step(inner);
    if (step.kind !== "run" && step.kind !== "uses") return;
    if (isText(step.if)) this.#warn("always-runs", step.if.at, alwaysText);
    if (step.kind === "run") {
      this.#injection(step.run, "env");
      this.#deprecated(step.run);
    } else {
      this.#pinned(step.uses, step.usesAt, "action");
      if (isGithubScript(step)) this.#injection(entryOf(step.with, "script"), "env");
    }
  }

  /** CI-33. */
  #injection(node: Node | undefined, instead: string): void {
    for (const { expression, at } of expressionsIn(node))
      for (const part of partsOf(expression)) {
        const path = untrustedIn(part);
        if (path === undefined) continue;
        this.#warn(
          "script-injection",
          at,
          `${path} is text that a stranger can choose, and it becomes part of the script: put it into ${instead} and use the variable`,
        );
      }
  }

  #deprecated(node: Node): void {
    const text = node.kind === "expression" ? node.source : node.kind === "scalar" ? textOf(node.value) : "";
    const name = /::(set-output|save-state|set-env|add-path)(?=[ :])/.exec(text)?.[1];
    if (name !== undefined)
      this.#warn(
        "deprecated-command",
        node.at,
        `::${name} is deprecated: write to the file that ${fileFor[name]} names`,
      );
  }

  #pinned(uses: string, at: Place, what: string): void {
    if (isLocalUses(uses) || uses.startsWith("docker://")) return;
    const reference = uses.split("@")[1] ?? "";
    if (!/^[\da-f]{40}$/i.test(reference))
      this.#warn(
        "unpinned-action",
        at,
        `the ${what} ${uses} can be changed by its owner: name a commit of 40 digits instead of ${reference}`,
      );
  }

  #label(label: string, at: Place): void {
    const known = this.#labels.some((other) => other.toLowerCase() === label.toLowerCase());
    if (known) return;
    const near = nearest(label.toLowerCase(), this.#labels);
    const meant = near === undefined ? "" : `; did you mean ${near}?`;
    this.#warn("unknown-label", at, `no runner is known to have the label ${label}${meant}`);
  }

  #condition(job: Job): void {
    if (isText(job.if)) this.#warn("always-runs", job.if.at, alwaysText);
    const why = neverHolds(job, this.#workflow, this.#never);
    if (why === undefined) return;
    this.#never.add(job.id.toLowerCase());
    this.#warn("never-runs", job.if.at ?? job.at, `the job ${job.id} can never run: ${why}`);
  }

  #needs(job: Job): void {
    const needs = new Set(job.needs.map((need) => need.id.toLowerCase()));
    const all =
      job.kind === "call"
        ? [...aroundSteps(job)]
        : [...aroundSteps(job), ...job.steps.flatMap((step) => [...inStep(step)])];
    for (const { at, name } of namesBelow(all, "needs"))
      if (!needs.has(name))
        this.#warn("unknown-need", at, `needs.${name} is always empty: the job ${job.id} does not need ${name}`);
  }

  #steps(found: Found, ids: ReadonlySet<string>): void {
    for (const { at, name } of namesBelow([found], "steps"))
      if (!ids.has(name))
        this.#warn("unknown-step", at, `steps.${name} is always empty: no earlier step has the id ${name}`);
  }
}

const alwaysText = "the condition has text around ${{ }}, so it is a text, and always true: put all of it inside";

const fileFor: Readonly<Record<string, string>> = {
  "set-output": "GITHUB_OUTPUT",
  "save-state": "GITHUB_STATE",
  "set-env": "GITHUB_ENV",
  "add-path": "GITHUB_PATH",
};

const isGithubScript = (step: UsesStep): boolean => step.uses.toLowerCase().startsWith("actions/github-script@");

function untrustedIn(part: Parameters<typeof pathOf>[0]): string | undefined {
  const path = pathOf(part);
  if (path !== undefined) return isUntrusted(path) ? path : undefined;
  const isWriter = part instanceof FunctionCall && part.functionName.lexeme.toLowerCase() === "tojson";
  const inner = isWriter && part.args[0] ? pathOf(part.args[0]) : undefined;
  return inner !== undefined && !isUntrusted(inner) && holdsUntrusted(inner) ? `toJSON(${inner})` : undefined;
}

/** `needs.build.outputs.x` names `build`. */
function* namesBelow(all: readonly Found[], context: string): Generator<{ readonly at: Place; readonly name: string }> {
  for (const { expression, at } of all) {
    const names = new Set<string>();
    for (const part of partsOf(expression)) {
      const [first, name] = pathOf(part)?.split(".") ?? [];
      if (first === context && name !== undefined && name !== "*") names.add(name);
    }
    for (const name of names) yield { at, name };
  }
}

/** Labels that the file names as they are; others are known when a run is planned. */
export function* labelsIn(node: Node): Generator<{ readonly label: string; readonly at: Place }> {
  const labels = node.kind === "mapping" ? entryOf(node, "labels") : node;
  const items = labels?.kind === "sequence" ? labels.items : labels ? [labels] : [];
  for (const item of items) {
    const label = stringOf(item);
    if (label !== undefined) yield { label, at: item.at };
  }
}
