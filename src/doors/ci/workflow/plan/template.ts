/** Gives nodes their values once the contexts exist. */
import { type Scope, evaluate } from "#doors/ci/workflow/expression/evaluate.ts";
import { EvaluationFault } from "#doors/ci/workflow/expression/functions.ts";
import { parseExpression } from "#doors/ci/workflow/expression/parse.ts";
import { Dictionary, isArray, isTruthy, kindOf, textOf, type Value } from "#doors/ci/workflow/expression/value.ts";
import type { Availability } from "#doors/ci/workflow/expression/availability.ts";
import type { Condition } from "#doors/ci/workflow/compile/model.ts";
import type { Place } from "#doors/ci/workflow/problem.ts";
import { placeNamed } from "#doors/ci/workflow/schema/places.ts";
import type { MappingNode, Node } from "#doors/ci/workflow/yaml/node.ts";

/** A value that cannot be had; says where in the file. */
export class TemplateFault extends Error {
  readonly at: Place | undefined;

  constructor(message: string, at?: Place) {
    super(at ? `(Line: ${at.line}, Col: ${at.column}): ${message}` : message);
    this.at = at;
  }
}

const memoryBytesMax = 10 * 1024 * 1024;

export function templateValue(node: Node, scope: Scope): Value {
  switch (node.kind) {
    case "scalar":
      return node.value;
    case "expression":
      return guarded(node.at, () =>
        evaluate(parseExpression(node.expression, placeNamed(node.available)), { memoryBytesMax, ...scope }),
      );
    case "sequence":
      return node.items.flatMap((item) => itemValues(item, scope));
    case "mapping":
      return mappingValue(node, scope);
    default:
      throw new TemplateFault("'insert' cannot be a value", node.at);
  }
}

/** A list that an expression gives inside a list is part of that list. */
function itemValues(item: Node, scope: Scope): readonly Value[] {
  const value = templateValue(item, scope);
  return item.kind === "expression" && isArray(value) ? value : [value];
}

function mappingValue(node: MappingNode, scope: Scope): Dictionary {
  const result = new Dictionary();
  for (const { key, value } of node.entries) {
    const item = templateValue(value, scope);
    if (key.kind !== "insert") {
      result.set(textOf(templateValue(key, scope)), item);
      continue;
    }
    if (!(item instanceof Dictionary)) throw new TemplateFault("A mapping was expected for 'insert'", value.at);
    for (const [name, inserted] of item.entries()) result.set(name, inserted);
  }
  return result;
}

export function templateText(node: Node, scope: Scope): string {
  const value = templateValue(node, scope);
  if (value !== null && typeof value === "object") throw unexpected("a string", value, node.at);
  return textOf(value);
}

export function templateBoolean(node: Node, scope: Scope): boolean {
  const value = templateValue(node, scope);
  if (typeof value === "boolean") return value;
  if (value === "true" || value === "false") return value === "true";
  throw unexpected("a boolean", value, node.at);
}

export function templateNumber(node: Node, scope: Scope): number {
  const value = templateValue(node, scope);
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  if (typeof number === "number" && !Number.isNaN(number)) return number;
  throw unexpected("a number", value, node.at);
}

/** A map of texts, such as env and with; an expression may give the whole of it. */
export function templateTexts(node: Node, scope: Scope): ReadonlyMap<string, string> {
  const value = templateValue(node, scope);
  if (value === null || value === "") return new Map();
  if (!(value instanceof Dictionary)) throw unexpected("a mapping", value, node.at);
  return new Map([...value.entries()].map(([key, item]) => [key, textOf(item)]));
}

export function conditionHolds(condition: Condition, available: Availability, scope: Scope): boolean {
  return guarded(condition.at, () =>
    isTruthy(evaluate(parseExpression(condition.expression, available), { memoryBytesMax, ...scope })),
  );
}

function unexpected(wanted: string, value: Value, at: Place): TemplateFault {
  const shown = value !== null && typeof value === "object" ? kindOf(value).toLowerCase() : `'${textOf(value)}'`;
  return new TemplateFault(`Unexpected value ${shown}: ${wanted} was expected`, at);
}

function guarded<T>(at: Place | undefined, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof EvaluationFault) throw new TemplateFault(error.message, at);
    throw error;
  }
}
