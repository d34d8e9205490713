/** `if:` to a condition that always has a status function in it (CI-1, CI-2). */
import type { Availability } from "#doors/ci/workflow/expression/availability.ts";
import { callsAnyOf, parseExpression } from "#doors/ci/workflow/expression/parse.ts";
import { textOf } from "#doors/ci/workflow/expression/value.ts";
import type { Problems } from "#doors/ci/workflow/problem.ts";
import { syntaxProblems } from "#doors/ci/workflow/schema/split.ts";
import type { Node } from "#doors/ci/workflow/yaml/node.ts";
import type { Condition } from "./model.ts";

const statusFunctions: ReadonlySet<string> = new Set(["always", "cancelled", "failure", "success"]);

export function conditionOf(node: Node | undefined, available: Availability, problems: Problems): Condition {
  const text = textIn(node);
  if (!node || text.trim() === "") return { expression: "success()" };
  const messages = node.kind === "expression" ? [] : syntaxProblems(text, available);
  for (const message of messages) problems.add(node.at, message);
  if (messages.length > 0) return { expression: "success()", at: node.at };
  return { expression: withStatus(text, available), at: node.at, source: text };
}

export function withStatus(text: string, available: Availability): string {
  return callsAnyOf(parseExpression(text, available), statusFunctions) ? text : `success() && (${text})`;
}

function textIn(node: Node | undefined): string {
  if (node?.kind === "expression") return node.expression;
  return node?.kind === "scalar" ? textOf(node.value) : "";
}
