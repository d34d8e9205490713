/** Pure: a job that does not begin at its first step, and may run another script than its file has. */
import type { Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import type { JobSpec } from "#doors/ci/run/spec.ts";
import { places } from "#doors/ci/workflow/schema/places.ts";
import { split } from "#doors/ci/workflow/schema/split.ts";
import type { Node } from "#doors/ci/workflow/yaml/node.ts";

/** In a run's record: one of its jobs does not begin at its first step. */
export type FromStep = {
  /** The stage and the key of its task. */
  readonly job: string;
  readonly key: string;
  /** The run whose steps before it count. */
  readonly run: string;
  /** The number of the first step that runs, and its place in the job. */
  readonly step: number;
  readonly next: number;
  /** What was kept before that step, as a checkpoint says it, and the task under whose key it is sealed. */
  readonly kept: Digest;
  readonly sealedFor: { readonly job: string; readonly task: string };
  /** Takes the place of the step's own. */
  readonly script?: string;
};

/** The job with the edited script in the place of the step's own. */
export function withScript(spec: JobSpec, { next, script }: Pick<FromStep, "next" | "script">): JobSpec {
  if (script === undefined) return spec;
  const steps = spec.steps.map((step, place) => {
    if (place !== next) return step;
    if (step.kind !== "run") throw new Fault("invalid", "edit a step", { why: "only a step with `run` has a script" });
    return { ...step, run: scriptNode(script) };
  });
  return { ...spec, steps };
}

/** Throws Fault "invalid" where it cannot be evaluated. */
export const checkScript = (script: string): void => void scriptNode(script);

function scriptNode(script: string): Node {
  const at = { line: 1, column: 1 };
  const found = split(script, places.step);
  switch (found.kind) {
    case "text":
    case "insert":
      return { kind: "scalar", at, value: script };
    case "literal":
      return { kind: "scalar", at, value: found.text };
    case "expression":
      return { kind: "expression", at, expression: found.expression, source: script, available: places.step.name };
    default:
      throw new Fault("invalid", "read the edited script", { why: found.messages.join("; ") });
  }
}
