/** The steps of a job or of a composite action. */
import type { Availability } from "#doors/ci/workflow/expression/availability.ts";
import { textOf } from "#doors/ci/workflow/expression/value.ts";
import type { Problems } from "#doors/ci/workflow/problem.ts";
import { entryOf, type MappingNode, type Node, type ScalarNode, stringOf } from "#doors/ci/workflow/yaml/node.ts";
import { conditionOf } from "./condition.ts";
import { Ids, usesName, usesProblem } from "./ids.ts";
import type { Step } from "./model.ts";
import { stepRetryOf } from "./millrace.ts";
import { optional } from "./optional.ts";

export type StepContext = { readonly problems: Problems; readonly ifAvailable: Availability };

export function stepsOf(node: Node | undefined, context: StepContext): readonly Step[] {
  const ids = new Ids();
  const nodes = node?.kind === "sequence" ? node.items : [];
  claimIds(nodes, ids, context.problems);
  return nodes.flatMap((item) => (item.kind === "mapping" ? [stepOf(item, ids, context)] : []));
}

/** Ids that authors gave come first, wherever they stand. */
function claimIds(nodes: readonly Node[], ids: Ids, problems: Problems): void {
  for (const node of nodes) {
    const id = entryOf(node, "id");
    const problem = id && ids.claim(stringOf(id) ?? "");
    if (id && problem !== undefined) problems.add(id.at, problem);
    const parallel = entryOf(node, "parallel");
    if (parallel?.kind === "sequence") claimIds(parallel.items, ids, problems);
  }
}

function stepOf(node: MappingNode, ids: Ids, context: StepContext): Step {
  const given = stringOf(entryOf(node, "id"));
  const common = (what: string) => ({
    id: given ?? ids.make(what),
    isIdGiven: given !== undefined,
    at: node.at,
    ...optional("name", entryOf(node, "name")),
    ...optional("continueOnError", entryOf(node, "continue-on-error")),
  });
  const parallel = entryOf(node, "parallel");
  if (parallel?.kind === "sequence") {
    const steps = parallel.items.flatMap((item) => (item.kind === "mapping" ? [stepOf(item, ids, context)] : []));
    return { kind: "parallel", at: node.at, id: ids.make("parallel"), steps };
  }
  const wait = entryOf(node, "wait");
  if (wait) return { ...named(common("wait"), "Wait"), kind: "wait", ids: namesIn(wait) };
  if (entryOf(node, "wait-all")) return { ...named(common("wait-all"), "Wait for all"), kind: "wait-all" };
  const cancel = entryOf(node, "cancel");
  if (cancel) return { ...named(common("cancel"), "Cancel"), kind: "cancel", target: stringOf(cancel) ?? "" };
  return workStepOf(node, common, context);
}

function workStepOf(
  node: MappingNode,
  common: (what: string) => Pick<Extract<Step, { kind: "run" }>, "id" | "isIdGiven" | "at">,
  { problems, ifAvailable }: StepContext,
): Step {
  const work = {
    if: conditionOf(entryOf(node, "if"), ifAvailable, problems),
    isBackground: (entryOf(node, "background") as ScalarNode | undefined)?.value === true,
    ...optional("timeoutMinutes", entryOf(node, "timeout-minutes")),
    ...optional("env", entryOf(node, "env")),
    ...optional("retry", stepRetryOf(entryOf(node, "x-millrace"), problems)),
  };
  const run = entryOf(node, "run");
  if (run)
    return {
      ...common("run"),
      ...work,
      kind: "run",
      run,
      ...optional("shell", entryOf(node, "shell")),
      ...optional("workingDirectory", entryOf(node, "working-directory")),
    };
  const usesNode = entryOf(node, "uses");
  const uses = stringOf(usesNode) ?? "";
  const problem = usesProblem(uses);
  if (problem !== undefined) problems.add(usesNode?.at, problem);
  return {
    ...common(usesName(uses)),
    ...work,
    kind: "uses",
    uses,
    usesAt: usesNode?.at ?? node.at,
    ...optional("with", entryOf(node, "with")),
  };
}

function named<T extends { readonly at: { readonly line: number; readonly column: number }; readonly name?: Node }>(
  step: T,
  name: string,
): T {
  return step.name ? step : { ...step, name: { kind: "scalar", at: step.at, value: name } };
}

function namesIn(node: Node): readonly string[] {
  if (node.kind === "sequence") return node.items.map((item) => (item.kind === "scalar" ? textOf(item.value) : ""));
  return node.kind === "scalar" ? [textOf(node.value)] : [];
}
