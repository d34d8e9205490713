/** Text to syntax tree: grammar and error texts are those of `@actions/expressions`; trees are kept (ADR 0050). */
import { type Expr, ExpressionError, Lexer, Parser } from "@actions/expressions";
import {
  ContextAccess,
  FunctionCall,
  Grouping,
  IndexAccess,
  Literal,
  Logical,
  Binary,
  Unary,
} from "@actions/expressions/ast";
import type { Token } from "@actions/expressions/lexer";
import type { Availability } from "./availability.ts";

/** An expression that cannot be read: the text is complete, with its position inside the expression. */
export class SyntaxFault extends Error {
  readonly phase: "lexing" | "parsing";

  constructor(phase: "lexing" | "parsing", message: string) {
    super(message);
    this.phase = phase;
  }
}

const keptMax = 4096;
const kept = new Map<string, Expr | undefined>();

/** Undefined is the empty expression. */
export function parseExpression(text: string, available: Availability): Expr | undefined {
  const key = `${available.name}\n${text}`;
  if (kept.has(key)) return kept.get(key);
  const parsed = parse(text, available);
  if (kept.size >= keptMax) kept.delete(kept.keys().next().value ?? "");
  kept.set(key, parsed);
  return parsed;
}

/** The package has the same limit, and no words for it. */
export const expressionLengthMax = 21_000;

function parse(text: string, available: Availability): Expr | undefined {
  if (text.length > expressionLengthMax)
    throw new SyntaxFault("lexing", `Exceeded max expression length ${expressionLengthMax}`);
  const tokens = guarded("lexing", text, () => new Lexer(text).lex().tokens);
  const functions = available.functions.map(({ name, argumentsMin, argumentsMax }) => ({
    name,
    minArgs: argumentsMin,
    maxArgs: argumentsMax,
  }));
  const last = tokens.at(-2);
  const parser = new Parser(tokens, [...available.contexts], functions);
  return guarded("parsing", text, () => parser.parse(), last);
}

function guarded<T>(phase: "lexing" | "parsing", text: string, work: () => T, last?: Token): T {
  try {
    return work();
  } catch (cause) {
    if (!(cause instanceof Error)) throw cause;
    const atEnd = last && cause.message === "Unexpected symbol: 'EOF'";
    throw new SyntaxFault(phase, atEnd ? endedAfter(last, text) : located(cause, text));
  }
}

/** The package names the end of the text where the reference names the last word before it. */
function endedAfter(last: Token, text: string): string {
  const position = offsetOf(last.range.start, text) + 1;
  return `Unexpected end of expression: '${last.lexeme}'. Located at position ${position} within expression: ${text}`;
}

/** The package counts columns per line; the reference counts characters from the start of the expression. */
function located(error: Error, text: string): string {
  if (!(error instanceof ExpressionError)) return error.message;
  return `${error.message}. Located at position ${offsetOf(error.pos, text) + 1} within expression: ${text}`;
}

function offsetOf(position: { readonly line: number; readonly column: number }, text: string): number {
  const before = text.split("\n").slice(0, position.line);
  return before.reduce((sum, line) => sum + line.length + 1, 0) + position.column;
}

/** Every part of an expression, parents first. */
export function* partsOf(expression: Expr | undefined): Generator<Expr> {
  if (!expression) return;
  yield expression;
  if (expression instanceof Unary) yield* partsOf(expression.expr);
  else if (expression instanceof Binary) yield* eachOf([expression.left, expression.right]);
  else if (expression instanceof Logical || expression instanceof FunctionCall) yield* eachOf(expression.args);
  else if (expression instanceof Grouping) yield* partsOf(expression.group);
  else if (expression instanceof IndexAccess) yield* eachOf([expression.expr, expression.index]);
}

function* eachOf(expressions: readonly Expr[]): Generator<Expr> {
  for (const expression of expressions) yield* partsOf(expression);
}

export function callsAnyOf(expression: Expr | undefined, names: ReadonlySet<string>): boolean {
  for (const part of partsOf(expression))
    if (part instanceof FunctionCall && names.has(part.functionName.lexeme.toLowerCase())) return true;
  return false;
}

/** `github.event.issue.title` for such a chain, with `*` for a filter; undefined for anything else. */
export function pathOf(expression: Expr): string | undefined {
  if (expression instanceof ContextAccess) return expression.name.lexeme.toLowerCase();
  if (!(expression instanceof IndexAccess)) return undefined;
  const parent = pathOf(expression.expr);
  if (parent === undefined) return undefined;
  if (!(expression.index instanceof Literal)) return `${parent}.*`;
  return `${parent}.${expression.index.literal.coerceString().toLowerCase()}`;
}
