/** What may stand in action.yml. */
import {
  among,
  any,
  boolean,
  type Definition,
  mapOf,
  mapping,
  nonEmpty,
  number,
  oneOf,
  sequence,
  string,
  within,
} from "./definition.ts";
import { places } from "./places.ts";

const input = mapOf(any, {
  description: string,
  required: oneOf(boolean, string),
  default: within(places.actionInputDefault, string),
  deprecationMessage: string,
});

const output = mapping({ description: string, value: within(places.actionOutput, string) });

const stepWork = {
  name: within(places.actionStep, string),
  id: nonEmpty,
  if: within(places.actionStepIf, string),
  env: within(places.actionStep, mapOf(string)),
  "continue-on-error": within(places.actionStep, boolean),
  "timeout-minutes": within(places.actionStep, number),
};

const compositeSteps = sequence(
  oneOf(
    mapping({
      ...stepWork,
      "run!": within(places.actionStep, string),
      "working-directory": within(places.actionStep, string),
      shell: within(places.actionStep, nonEmpty),
    }),
    mapping({ ...stepWork, "uses!": nonEmpty, with: within(places.actionStep, mapOf(string)) }),
  ),
);

const condition = within(places.actionRunsIf, string);

const composite = mapping({ "using!": among("composite"), "steps!": compositeSteps });
const docker = mapping({
  "using!": among("docker"),
  "image!": nonEmpty,
  args: sequence(within(places.actionStep, string)),
  env: within(places.actionStep, mapOf(string)),
  entrypoint: nonEmpty,
  "pre-entrypoint": nonEmpty,
  "post-entrypoint": nonEmpty,
  "pre-if": condition,
  "post-if": condition,
});
const javascript = mapping({
  "using!": among("node12", "node16", "node20", "node24", "node26"),
  "main!": nonEmpty,
  pre: nonEmpty,
  "pre-if": condition,
  post: nonEmpty,
  "post-if": condition,
});

export const actionDefinition: Definition = mapOf(any, {
  name: string,
  description: string,
  inputs: mapOf(input),
  outputs: mapOf(output),
  "runs!": oneOf(composite, docker, javascript),
});
