/** What can be found wrong before any expression has a value. */
import { textOf } from "#doors/ci/workflow/expression/value.ts";
import type { Problems } from "#doors/ci/workflow/problem.ts";
import { entryOf, type MappingNode, type Node, stringOf } from "#doors/ci/workflow/yaml/node.ts";

const groupLengthMax = 400;

export function checkJob(job: MappingNode, problems: Problems): void {
  checkRunnerGroup(entryOf(entryOf(job, "runs-on"), "group"), problems);
  checkConcurrency(entryOf(job, "concurrency"), problems);
  checkMatrix(entryOf(entryOf(job, "strategy"), "matrix"), problems);
  checkContainer(entryOf(job, "container"), problems);
  const services = entryOf(job, "services");
  if (services?.kind === "mapping") for (const { value } of services.entries) checkContainer(value, problems);
  checkSnapshot(entryOf(job, "snapshot"), problems);
}

export function checkConcurrency(node: Node | undefined, problems: Problems): void {
  const group = stringOf(node) ?? stringOf(entryOf(node, "group"));
  if (node && (group?.length ?? 0) > groupLengthMax)
    problems.add(node.at, `Concurrency group name must be less than ${groupLengthMax} characters`);
  const queue = entryOf(node, "queue");
  const cancels = entryOf(node, "cancel-in-progress");
  if (stringOf(queue) === "max" && cancels?.kind === "scalar" && cancels.value === true)
    problems.add(queue?.at, "'queue: max' cannot be combined with 'cancel-in-progress: true'");
}

function checkRunnerGroup(node: Node | undefined, problems: Problems): void {
  const name = stringOf(node);
  if (node === undefined || name === undefined || !name.includes("/")) return;
  const [prefix = "", group = "", ...rest] = name.split("/");
  const isPrefix = ["org", "organization", "ent", "enterprise"].includes(prefix);
  if (rest.length === 0 && group === "") problems.add(node.at, `Invalid runs-on group name '${name}'.`);
  else if (rest.length > 0 || !isPrefix)
    problems.add(
      node.at,
      `Invalid runs-on group name '${name}'. Please use 'organization/' or 'enterprise/' prefix to target a single runner group.`,
    );
}

/** CI-17, CI-19; what expressions will bring is checked when they have their values. */
function checkMatrix(node: Node | undefined, problems: Problems): void {
  if (node?.kind !== "mapping") return;
  let hasVector = false;
  const names = new Set<string>();
  for (const { key, value } of node.entries) {
    const name = key.kind === "scalar" ? textOf(key.value) : "";
    if (name === "exclude") continue;
    if (name === "include") {
      hasVector ||= value.kind !== "sequence" || value.items.length > 0;
      continue;
    }
    hasVector = true;
    names.add(name.toLowerCase());
    if (value.kind === "sequence" && value.items.length === 0)
      problems.add(value.at, `Matrix vector '${name}' does not contain any values`);
  }
  if (!hasVector) problems.add(node.at, "Matrix must define at least one vector");
  const hasExpressionKey = node.entries.some(({ key }) => key.kind !== "scalar");
  if (!hasExpressionKey) checkExclude(entryOf(node, "exclude"), names, problems);
}

function checkExclude(node: Node | undefined, names: ReadonlySet<string>, problems: Problems): void {
  for (const item of node?.kind === "sequence" ? node.items : []) {
    if (item.kind !== "mapping") continue;
    if (item.entries.length === 0) problems.add(item.at, "Matrix exclude filter must not be empty");
    for (const { key } of item.entries)
      if (key.kind === "scalar" && !names.has(textOf(key.value).toLowerCase()))
        problems.add(key.at, `Matrix exclude key '${textOf(key.value)}' does not match any key within the matrix`);
  }
}

function checkContainer(node: Node | undefined, problems: Problems): void {
  if (!node || node.kind === "expression") return;
  const image = node.kind === "mapping" ? entryOf(node, "image") : node;
  const hasExpressionKey = node.kind === "mapping" && node.entries.some(({ key }) => key.kind !== "scalar");
  if ((!image && !hasExpressionKey) || stringOf(image) === "docker://")
    problems.add(node.at, "Container image cannot be empty");
}

function checkSnapshot(node: Node | undefined, problems: Problems): void {
  const version = stringOf(entryOf(node, "version"));
  if (node && version !== undefined && !/^\d+\.\*$/.test(version))
    problems.add(node.at, `Expected format '{major-version}.*' Actual '${version}'`);
}
