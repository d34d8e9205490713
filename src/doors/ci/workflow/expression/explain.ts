/** What each part of an expression came to, for people who ask why a condition was false. Pure. */
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
import { evaluate, type Scope } from "./evaluate.ts";
import { EvaluationFault } from "./functions.ts";
import { isPrimitive, isTruthy, kindOf, type Value } from "./value.ts";

export type ConditionPart = {
  readonly expression: string;
  /** As JSON; Array and Object for what is no single value. Absent: it was not evaluated, or could not be. */
  readonly value?: string;
  readonly error?: string;
  /** What a function looked at. */
  readonly note?: string;
  readonly parts?: readonly ConditionPart[];
};

/** Says what a status function looked at; undefined: nothing that its arguments do not show. */
export type NoteOf = (functionName: string) => string | undefined;

const statusFunctions: ReadonlySet<string> = new Set(["cancelled", "failure", "success"]);
const partsMax = 200;
const textLengthMax = 300;

export function explain(expression: Expr | undefined, scope: Scope, noteOf: NoteOf = () => undefined): ConditionPart {
  return new Explanation(scope, noteOf).partOf(expression);
}

class Explanation {
  readonly #scope: Scope;
  readonly #noteOf: NoteOf;
  #parts = 0;

  constructor(scope: Scope, noteOf: NoteOf) {
    this.#scope = scope;
    this.#noteOf = noteOf;
  }

  partOf(node: Expr | undefined): ConditionPart {
    if (node instanceof Grouping) return this.partOf(node.group);
    this.#parts += 1;
    const expression = cut(node ? expressionText(node) : "");
    const parts = this.#parts > partsMax ? [] : this.#partsOf(node);
    const isStatus = node instanceof FunctionCall && statusFunctions.has(node.functionName.lexeme.toLowerCase());
    const note = isStatus ? this.#noteOf(node.functionName.lexeme.toLowerCase()) : undefined;
    return {
      expression,
      ...this.#valueOf(node),
      ...(note !== undefined && { note }),
      ...(parts.length > 0 && { parts }),
    };
  }

  #partsOf(node: Expr | undefined): readonly ConditionPart[] {
    if (node instanceof Logical) return this.#logical(node);
    const children =
      node instanceof Binary
        ? [node.left, node.right]
        : node instanceof Unary
          ? [node.expr]
          : node instanceof FunctionCall
            ? node.args
            : [];
    return children.flatMap((child) => (child instanceof Literal ? [] : [this.partOf(child)]));
  }

  /** What stands behind the part that decided was never evaluated. */
  #logical(node: Logical): readonly ConditionPart[] {
    const stopsAt = node.operator.type === TokenType.OR;
    let isDecided = false;
    return node.args.map((arg) => {
      if (isDecided) return { expression: cut(expressionText(arg)) };
      const part = this.partOf(arg);
      const value = this.#evaluated(arg);
      isDecided = "error" in value || isTruthy(value.value) === stopsAt;
      return part;
    });
  }

  #valueOf(node: Expr | undefined): Pick<ConditionPart, "value" | "error"> {
    const evaluated = this.#evaluated(node);
    return "error" in evaluated ? evaluated : { value: cut(valueText(evaluated.value)) };
  }

  #evaluated(node: Expr | undefined): { readonly value: Value } | { readonly error: string } {
    try {
      return { value: evaluate(node, this.#scope) };
    } catch (error) {
      if (error instanceof EvaluationFault) return { error: cut(error.message) };
      throw error;
    }
  }
}

const valueText = (value: Value): string => (isPrimitive(value) ? JSON.stringify(value) : kindOf(value));

const cut = (text: string): string => (text.length > textLengthMax ? `${text.slice(0, textLengthMax - 1)}…` : text);

/** The expression as its author could have written it. */
export function expressionText(node: Expr): string {
  if (node instanceof Literal) return node.token.lexeme;
  if (node instanceof Grouping) return `(${expressionText(node.group)})`;
  if (node instanceof ContextAccess) return node.name.lexeme;
  if (node instanceof Unary) return `!${expressionText(node.expr)}`;
  if (node instanceof Logical) return node.args.map(expressionText).join(` ${node.operator.lexeme} `);
  if (node instanceof Binary)
    return `${expressionText(node.left)} ${node.operator.lexeme} ${expressionText(node.right)}`;
  if (node instanceof FunctionCall) return `${node.functionName.lexeme}(${node.args.map(expressionText).join(", ")})`;
  if (node instanceof IndexAccess) return `${expressionText(node.expr)}${indexText(node.index)}`;
  return "";
}

function indexText(index: Expr): string {
  if (index instanceof Star) return ".*";
  if (index instanceof Literal && index.token.type === TokenType.IDENTIFIER) return `.${index.token.lexeme}`;
  return `[${expressionText(index)}]`;
}

/** Every text in it changed, for example masked. */
export function mapTexts(part: ConditionPart, change: (text: string) => string): ConditionPart {
  const { expression, value, error, note, parts } = part;
  return {
    expression: change(expression),
    ...(value !== undefined && { value: change(value) }),
    ...(error !== undefined && { error: change(error) }),
    ...(note !== undefined && { note: change(note) }),
    ...(parts && { parts: parts.map((one) => mapTexts(one, change)) }),
  };
}

/** As lines: each part below the one that it belongs to. */
export function conditionLines(part: ConditionPart, depth = 0): readonly string[] {
  const came = part.error ?? (part.value === undefined ? "not evaluated" : part.value);
  const note = part.note === undefined ? "" : ` (${part.note})`;
  return [
    `${"  ".repeat(depth)}${part.expression} → ${came}${note}`,
    ...(part.parts ?? []).flatMap((one) => conditionLines(one, depth + 1)),
  ];
}
