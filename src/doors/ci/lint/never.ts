/** Conditions that cannot hold, as far as that can be known without a run. */
import type { Expr } from "@actions/expressions";
import { Binary, ContextAccess, FunctionCall, Grouping, Literal, Logical } from "@actions/expressions/ast";
import { TokenType } from "@actions/expressions/lexer";
import { evaluate } from "#doors/ci/workflow/expression/evaluate.ts";
import { callsAnyOf, parseExpression, partsOf, pathOf } from "#doors/ci/workflow/expression/parse.ts";
import { Dictionary, isTruthy } from "#doors/ci/workflow/expression/value.ts";
import { places } from "#doors/ci/workflow/schema/places.ts";
import type { Condition, Job, Workflow } from "#doors/ci/workflow/compile/model.ts";

const despite: ReadonlySet<string> = new Set(["always", "failure", "cancelled"]);

/** Undefined when it may run. `never` has the jobs found before that cannot. */
export function neverHolds(job: Job, workflow: Workflow, never: ReadonlySet<string>): string | undefined {
  const expression = parseExpression(job.if.expression, places.jobIf);
  for (const term of termsOf(expression)) {
    if (isConstant(term) && !isTruthy(evaluate(term, { contexts: new Dictionary() })))
      return `its condition ${job.if.source ?? ""} is always false`;
    const event = wrongEvent(term, workflow);
    if (event !== undefined) return `its condition wants the event ${event}, and the workflow does not run on it`;
  }
  const blocking = job.needs.find((need) => never.has(need.id.toLowerCase()));
  if (blocking && !callsAnyOf(expression, despite)) return `it needs ${blocking.id}, which can never run`;
  return undefined;
}

/** Text around `${{ }}`: the compiler made a call of format of it. */
export function isText(condition: Condition): boolean {
  return (condition.source ?? "").startsWith("format('");
}

/** All of these must hold. */
function termsOf(expression: Expr | undefined): readonly Expr[] {
  if (!expression) return [];
  if (expression instanceof Grouping) return termsOf(expression.group);
  if (expression instanceof Logical && expression.operator.type === TokenType.AND)
    return expression.args.flatMap((arg) => termsOf(arg));
  return [expression];
}

function isConstant(expression: Expr): boolean {
  for (const part of partsOf(expression))
    if (part instanceof ContextAccess || part instanceof FunctionCall) return false;
  return true;
}

function wrongEvent(expression: Expr, { on }: Workflow): string | undefined {
  if (!(expression instanceof Binary) || expression.operator.type !== TokenType.EQUAL_EQUAL) return undefined;
  const sides = [expression.left, expression.right];
  const literal = sides.find((side) => side instanceof Literal);
  if (!(literal instanceof Literal) || !sides.some((side) => pathOf(side) === "github.event_name")) return undefined;
  const name = literal.literal.coerceString();
  const events = Object.keys(on.events);
  // a called workflow has the event of its caller
  return events.includes("workflow_call") || events.includes(name.toLowerCase()) ? undefined : name;
}
