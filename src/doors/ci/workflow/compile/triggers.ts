/** What starts a workflow. */
import { textOf } from "#doors/ci/workflow/expression/value.ts";
import type { Problems } from "#doors/ci/workflow/problem.ts";
import { entryOf, type Node, stringOf } from "#doors/ci/workflow/yaml/node.ts";
import { cronProblem } from "./cron.ts";
import { optional } from "./optional.ts";

export type Filters = {
  readonly types?: readonly string[];
  readonly branches?: readonly string[];
  readonly branchesIgnore?: readonly string[];
  readonly tags?: readonly string[];
  readonly tagsIgnore?: readonly string[];
  readonly paths?: readonly string[];
  readonly pathsIgnore?: readonly string[];
  readonly workflows?: readonly string[];
  readonly names?: readonly string[];
  readonly versions?: readonly string[];
};

export type DispatchInput = {
  readonly name: string;
  readonly type: "string" | "boolean" | "number" | "choice" | "environment";
  readonly isRequired: boolean;
  readonly description?: string;
  readonly default?: string | boolean | number;
  readonly options?: readonly string[];
};

export type Triggers = {
  /** By event name, in the order of the file; `workflow_call`, `workflow_dispatch` and `schedule` are among them. */
  readonly events: Readonly<Record<string, Filters>>;
  readonly schedules: readonly { readonly cron: string; readonly timezone?: string }[];
  readonly dispatchInputs: readonly DispatchInput[];
  /** What `workflow_call` says of inputs, secrets and outputs. */
  readonly call?: Node;
};

export function triggersOf(on: Node | undefined, problems: Problems): Triggers {
  if (on?.kind === "mapping") return fromMapping(on, problems);
  const names = on?.kind === "sequence" ? on.items : on ? [on] : [];
  const events = names.flatMap((name) => (stringOf(name) === undefined ? [] : [[stringOf(name) ?? "", {}] as const]));
  return { events: Object.fromEntries(events), schedules: [], dispatchInputs: [] };
}

function fromMapping(on: Node, problems: Problems): Triggers {
  if (on.kind !== "mapping") return { events: {}, schedules: [], dispatchInputs: [] };
  const events = on.entries.map(
    ({ key, value }) => [key.kind === "scalar" ? textOf(key.value) : "", filtersOf(value)] as const,
  );
  for (const { value } of on.entries) checkFilters(value, problems);
  return {
    events: Object.fromEntries(events),
    schedules: schedulesOf(entryOf(on, "schedule"), problems),
    dispatchInputs: dispatchInputsOf(entryOf(entryOf(on, "workflow_dispatch"), "inputs")),
    ...optional("call", entryOf(on, "workflow_call")),
  };
}

const filterNames = {
  types: "types",
  branches: "branches",
  branchesIgnore: "branches-ignore",
  tags: "tags",
  tagsIgnore: "tags-ignore",
  paths: "paths",
  pathsIgnore: "paths-ignore",
  workflows: "workflows",
  names: "names",
  versions: "versions",
} as const satisfies Record<keyof Filters, string>;

function filtersOf(value: Node): Filters {
  const pairs = Object.entries(filterNames).flatMap(([field, name]) => {
    const list = listOf(entryOf(value, name));
    return list ? [[field, list] as const] : [];
  });
  return Object.fromEntries(pairs);
}

export function listOf(node: Node | undefined): readonly string[] | undefined {
  if (!node) return undefined;
  if (node.kind === "sequence") return node.items.map((item) => (item.kind === "scalar" ? textOf(item.value) : ""));
  return node.kind === "scalar" ? [textOf(node.value)] : undefined;
}

/** CI-53: one of the two kinds, and patterns that only take away take away from nothing. */
function checkFilters(value: Node, problems: Problems): void {
  for (const name of ["branches", "tags", "paths"]) {
    const node = entryOf(value, name);
    const patterns = listOf(node) ?? [];
    if (node && patterns.length > 0 && patterns.every((pattern) => pattern.startsWith("!")))
      problems.add(node.at, `At least one pattern under '${name}' must not start with '!'`);
  }
}

function schedulesOf(node: Node | undefined, problems: Problems): Triggers["schedules"] {
  if (node?.kind !== "sequence") return [];
  return node.items.map((item) => {
    const cron = stringOf(entryOf(item, "cron")) ?? "";
    const problem = cronProblem(cron);
    if (problem !== undefined) problems.add(entryOf(item, "cron")?.at, problem);
    const timezone = stringOf(entryOf(item, "timezone"));
    return { cron, ...(timezone !== undefined && { timezone }) };
  });
}

function dispatchInputsOf(node: Node | undefined): readonly DispatchInput[] {
  if (node?.kind !== "mapping") return [];
  return node.entries.map(({ key, value }) => {
    const initial = entryOf(value, "default");
    const required = entryOf(value, "required");
    const description = stringOf(entryOf(value, "description"));
    const options = listOf(entryOf(value, "options"));
    return {
      name: key.kind === "scalar" ? textOf(key.value) : "",
      type: (stringOf(entryOf(value, "type")) ?? "string") as DispatchInput["type"],
      isRequired: required?.kind === "scalar" && required.value === true,
      ...(initial?.kind === "scalar" && initial.value !== null && { default: initial.value }),
      ...(description !== undefined && { description }),
      ...(options && { options }),
    };
  });
}
