/** Splits a scalar at its `${{ }}` and makes one expression of it. */
import { expressionLengthMax, parseExpression, SyntaxFault } from "#doors/ci/workflow/expression/parse.ts";
import type { Availability } from "#doors/ci/workflow/expression/availability.ts";

export type Split =
  | { readonly kind: "text" }
  | { readonly kind: "literal"; readonly text: string }
  | { readonly kind: "insert" }
  | { readonly kind: "expression"; readonly expression: string }
  | { readonly kind: "problems"; readonly messages: readonly string[] };

type Segment = { readonly text: string } | { readonly expression: string };

const unclosed =
  "The expression is not closed. An unescaped ${{ sequence was found, but the closing }} sequence was not found.";

export function split(text: string, available: Availability): Split {
  if (!text.includes("${{")) return { kind: "text" };
  const segments = segmentsOf(text);
  if (!segments) return { kind: "problems", messages: [unclosed] };
  const expressions = segments.flatMap((segment) => ("expression" in segment ? [segment.expression] : []));
  const [only] = expressions;
  if (segments.length === 1 && only === "insert") return { kind: "insert" };
  if (segments.length > 1 && joined(segments).length > expressionLengthMax)
    return { kind: "problems", messages: [`Exceeded max expression length ${expressionLengthMax}`] };
  const messages = expressions.flatMap((expression) => problemsOf(expression, available, segments.length > 1));
  if (messages.length > 0) return { kind: "problems", messages };
  if (segments.length > 1 || only === undefined) return checked(joined(segments), available);
  const literal = /^'((?:[^']|'')*)'$/.exec(only);
  if (literal) return { kind: "literal", text: (literal[1] ?? "").replaceAll("''", "'") };
  return { kind: "expression", expression: only };
}

function problemsOf(expression: string, available: Availability, isPart: boolean): readonly string[] {
  if (expression === "") return ["An expression was expected"];
  if (expression === "insert" && isPart)
    return [
      "The directive 'insert' is not allowed in this context. Directives are not supported for expressions that are " +
        "embedded within a string. Directives are only supported when the entire value is an expression.",
    ];
  return syntaxProblems(expression, available);
}

/** Empty when the expression is right. */
export function syntaxProblems(expression: string, available: Availability): readonly string[] {
  try {
    parseExpression(expression, available);
    return [];
  } catch (error) {
    if (error instanceof SyntaxFault) return [error.message];
    throw error;
  }
}

/** Text with expressions inside is one expression as well, and may be no longer than one. */
function checked(expression: string, available: Availability): Split {
  const messages = syntaxProblems(expression, available);
  return messages.length > 0 ? { kind: "problems", messages } : { kind: "expression", expression };
}

function joined(segments: readonly Segment[]): string {
  const args: string[] = [];
  const pattern = segments.map((segment) => {
    if ("text" in segment) return segment.text.replaceAll("'", "''").replaceAll("{", "{{").replaceAll("}", "}}");
    args.push(segment.expression);
    return `{${args.length - 1}}`;
  });
  return `format('${pattern.join("")}', ${args.join(", ")})`;
}

/** Undefined when an expression is not closed. Quotes hide a closing brace. */
function segmentsOf(text: string): readonly Segment[] | undefined {
  const segments: Segment[] = [];
  let at = 0;
  while (at < text.length) {
    const open = text.indexOf("${{", at);
    if (open !== at) segments.push({ text: text.slice(at, open < 0 ? text.length : open) });
    if (open < 0) break;
    const close = closeOf(text, open + 3);
    if (close < 0) return undefined;
    segments.push({ expression: text.slice(open + 3, close).trim() });
    at = close + 2;
  }
  return segments;
}

function closeOf(text: string, from: number): number {
  let isQuoted = false;
  for (let at = from; at < text.length; at += 1) {
    if (text[at] === "'") isQuoted = !isQuoted;
    else if (!isQuoted && text[at] === "}" && text[at + 1] === "}") return at;
  }
  return -1;
}
