/** Every expression of a workflow, with its place. */
import type { Expr } from "@actions/expressions";
import { parseExpression } from "#doors/ci/workflow/expression/parse.ts";
import type { Place } from "#doors/ci/workflow/problem.ts";
import { placeNamed, places } from "#doors/ci/workflow/schema/places.ts";
import type { Condition, Job, Step } from "#doors/ci/workflow/compile/model.ts";
import type { Node } from "#doors/ci/workflow/yaml/node.ts";

export type Found = { readonly expression: Expr; readonly at: Place };

export function* expressionsIn(node: Node | undefined): Generator<Found> {
  if (!node) return;
  if (node.kind === "expression") {
    const expression = parseExpression(node.expression, placeNamed(node.available));
    if (expression) yield { expression, at: node.at };
  } else if (node.kind === "sequence") for (const item of node.items) yield* expressionsIn(item);
  else if (node.kind === "mapping")
    for (const { key, value } of node.entries) {
      yield* expressionsIn(key);
      yield* expressionsIn(value);
    }
}

export function* inCondition(condition: Condition, place: "jobIf" | "stepIf"): Generator<Found> {
  const expression = parseExpression(condition.expression, places[place]);
  if (expression && condition.at) yield { expression, at: condition.at };
}

export function* inStep(step: Step): Generator<Found> {
  if (step.kind === "parallel") {
    for (const inner of step.steps) yield* inStep(inner);
    return;
  }
  yield* expressionsIn(step.name);
  yield* expressionsIn(step.continueOnError);
  if (step.kind !== "run" && step.kind !== "uses") return;
  yield* inCondition(step.if, "stepIf");
  yield* expressionsIn(step.env);
  yield* expressionsIn(step.timeoutMinutes);
  if (step.kind === "uses") yield* expressionsIn(step.with);
  else {
    yield* expressionsIn(step.run);
    yield* expressionsIn(step.shell);
    yield* expressionsIn(step.workingDirectory);
  }
}

/** All of a job but its steps. */
export function* aroundSteps(job: Job): Generator<Found> {
  yield* inCondition(job.if, "jobIf");
  const common = [job.name, job.strategy, job.concurrency];
  const own =
    job.kind === "call"
      ? [job.with, job.secrets === "inherit" ? undefined : job.secrets]
      : [
          job.runsOn,
          job.env,
          job.environment,
          job.container,
          job.services,
          job.defaults,
          job.timeoutMinutes,
          job.continueOnError,
        ];
  for (const node of [...common, ...own]) yield* expressionsIn(node);
}
