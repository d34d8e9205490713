/**
 * Evaluates a syntax tree over contexts. Our own, not the package's: its numbers print otherwise than the reference's,
 * it has no limit of memory, and `case` evaluates what it does not need (ADR 0050).
 */
import type { Expr } from "@actions/expressions";
import {
  Binary,
  ContextAccess,
  FunctionCall,
  Grouping,
  IndexAccess,
  Literal,
  Logical,
  Star,
  Unary,
} from "@actions/expressions/ast";
import { TokenType } from "@actions/expressions/lexer";
import { EvaluationFault, type ExpressionFunction, wellKnown } from "./functions.ts";
import {
  areEqual,
  compare,
  Dictionary,
  isArray,
  isPrimitive,
  isTruthy,
  numberOf,
  textOf,
  type Value,
} from "./value.ts";

export type Scope = {
  readonly contexts: Dictionary;
  /** By lower-case name: success, failure, always, cancelled, hashFiles, where the place has them. */
  readonly functions?: ReadonlyMap<string, ExpressionFunction>;
  /** What the values made on the way may take together; 1 MiB unless said. */
  readonly memoryBytesMax?: number;
};

export function evaluate(expression: Expr | undefined, scope: Scope): Value {
  if (!expression) return null;
  const value = new Evaluation(scope).valueOf(expression);
  return value instanceof Filtered ? [...value] : value;
}

const memoryBytesDefault = 1024 * 1024;
const objectBytes = 24;
const stringBytes = 26;

/** What `*` makes: access to a property of it is access to that property of each item (CI-25). */
class Filtered extends Array<Value> {}

class Evaluation {
  readonly #scope: Scope;
  readonly #memoryBytesMax: number;
  #memoryBytes = 0;

  constructor(scope: Scope) {
    this.#scope = scope;
    this.#memoryBytesMax = scope.memoryBytesMax ?? memoryBytesDefault;
  }

  valueOf(node: Expr): Value {
    if (node instanceof Literal) return literal(node);
    if (node instanceof Grouping) return this.valueOf(node.group);
    if (node instanceof ContextAccess) return this.#scope.contexts.get(node.name.lexeme) ?? null;
    if (node instanceof Unary) return !isTruthy(this.valueOf(node.expr));
    if (node instanceof Logical) return this.#logical(node);
    if (node instanceof Binary) return this.#binary(node);
    if (node instanceof IndexAccess) return this.#index(node);
    if (node instanceof FunctionCall) return this.#call(node);
    throw new EvaluationFault("the expression has a part of an unknown kind");
  }

  #logical(node: Logical): Value {
    const stopsAt = node.operator.type === TokenType.OR;
    let value: Value = null;
    for (const arg of node.args) {
      value = this.valueOf(arg);
      if (isTruthy(value) === stopsAt) break;
    }
    return value;
  }

  #binary(node: Binary): Value {
    const left = this.valueOf(node.left);
    const right = this.valueOf(node.right);
    if (node.operator.type === TokenType.EQUAL_EQUAL) return areEqual(left, right);
    if (node.operator.type === TokenType.BANG_EQUAL) return !areEqual(left, right);
    const order = compare(left, right);
    if (order === undefined) {
      const orEqual = node.operator.type === TokenType.GREATER_EQUAL || node.operator.type === TokenType.LESS_EQUAL;
      return orEqual && areEqual(left, right);
    }
    if (node.operator.type === TokenType.GREATER) return order > 0;
    if (node.operator.type === TokenType.GREATER_EQUAL) return order >= 0;
    if (node.operator.type === TokenType.LESS) return order < 0;
    return order <= 0;
  }

  #index(node: IndexAccess): Value {
    const object = this.valueOf(node.expr);
    if (node.index instanceof Star) return this.#made(filtered(itemsOf(object)));
    const index = this.valueOf(node.index);
    if (!(object instanceof Filtered)) return entry(object, index) ?? null;
    const found = new Filtered();
    for (const item of object) {
      const value = entry(item, index);
      if (value !== undefined) found.push(value);
    }
    return this.#made(found);
  }

  #call(node: FunctionCall): Value {
    const name = node.functionName.lexeme.toLowerCase();
    const heldBytes = this.#memoryBytes;
    if (name === "case") return this.#case(node);
    const call = wellKnown.get(name) ?? this.#scope.functions?.get(name);
    if (!call) throw new EvaluationFault(`The function '${node.functionName.lexeme}' cannot be called here`);
    const args = node.args.map((arg) => {
      const value = this.valueOf(arg);
      return value instanceof Filtered ? [...value] : value;
    });
    const result = call(...args);
    this.#memoryBytes = heldBytes; // the arguments are no longer needed
    return this.#made(result);
  }

  #case(node: FunctionCall): Value {
    for (let at = 0; at + 1 < node.args.length; at += 2) {
      const predicate = this.valueOf(node.args[at] as Expr);
      if (typeof predicate !== "boolean") throw new EvaluationFault("case predicate must evaluate to a boolean value");
      if (predicate) return this.valueOf(node.args[at + 1] as Expr);
    }
    return this.valueOf(node.args.at(-1) as Expr);
  }

  #made<T extends Value>(value: T): T {
    this.#memoryBytes += sizeBytes(value, this.#memoryBytesMax);
    if (this.#memoryBytes > this.#memoryBytesMax)
      throw new EvaluationFault("The maximum allowed memory size was exceeded");
    return value;
  }
}

/** Not by the constructor: with one number it would make so many holes. */
function filtered(items: readonly Value[]): Filtered {
  const result = new Filtered();
  for (const item of items) result.push(item);
  return result;
}

/** Of several `''` in one string the package reads only the first as a quote. */
function literal(node: Literal): Value {
  if (node.token.type === TokenType.STRING) return node.token.lexeme.slice(1, -1).replaceAll("''", "'");
  const data = node.literal;
  return "value" in data ? data.value : null;
}

function itemsOf(value: Value): readonly Value[] {
  if (value instanceof Filtered) return value.flatMap((item) => [...itemsOf(item)]);
  if (isArray(value)) return value;
  return value instanceof Dictionary ? [...value.values()] : [];
}

/** Undefined where there is no such entry. */
function entry(value: Value, index: Value): Value | undefined {
  if (value instanceof Dictionary) return isPrimitive(index) ? value.get(textOf(index)) : undefined;
  if (!isArray(value)) return undefined;
  const number = Math.trunc(numberOf(index));
  return number >= 0 && number < value.length ? value[number] : undefined;
}

function sizeBytes(value: Value, enoughBytes: number): number {
  if (typeof value === "string") return stringBytes + value.length * 2;
  let sum = objectBytes;
  if (value instanceof Dictionary)
    for (const [key, item] of value.entries()) {
      sum += stringBytes + key.length * 2 + sizeBytes(item, enoughBytes);
      if (sum > enoughBytes) break;
    }
  else if (isArray(value))
    for (const item of value) {
      sum += sizeBytes(item, enoughBytes);
      if (sum > enoughBytes) break;
    }
  return sum;
}
