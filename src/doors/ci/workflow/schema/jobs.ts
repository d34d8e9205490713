/** What may stand below `jobs:`, and the steps. */
import {
  among,
  any,
  boolean,
  type Definition,
  mapOf,
  mapping,
  nonEmpty,
  nonEmptyList,
  nothing,
  number,
  oneOf,
  oneOrMore,
  sequence,
  string,
  within,
} from "./definition.ts";
import { permissions } from "./permissions.ts";
import { places } from "./places.ts";

const needs = oneOf(nonEmptyList, nonEmpty);

/** A whole map may be one expression: the reference's language tools refuse it, its servers take it. */
const strategy = within(
  places.strategy,
  mapping({
    "fail-fast": boolean,
    "max-parallel": number,
    matrix: mapOf(sequence(any), { include: sequence(mapOf(any)), exclude: sequence(mapOf(any)) }),
  }),
);

const runsOn = within(places.cell, oneOf(nonEmpty, nonEmptyList, mapping({ group: nonEmpty, labels: oneOrMore })));

const containerProperties = {
  image: nonEmpty,
  options: string,
  env: mapOf(within(places.containerEnv, string)),
  ports: nonEmptyList,
  volumes: nonEmptyList,
  credentials: within(places.credentials, mapping({ username: nonEmpty, password: nonEmpty })),
};

const container = within(places.cell, oneOf(string, mapping(containerProperties)));
const service = oneOf(nonEmpty, mapping({ ...containerProperties, entrypoint: string, command: string }));

const concurrencyMapping = mapping({
  "group!": nonEmpty,
  "cancel-in-progress": boolean,
  queue: among("single", "max"),
});
export const workflowConcurrency = within(places.workflowConcurrency, oneOf(string, concurrencyMapping));
const jobConcurrency = within(places.cell, oneOf(nonEmpty, concurrencyMapping));

const environment = within(
  places.cell,
  oneOf(string, mapping({ "name!": string, url: within(places.environmentUrl, string), deployment: boolean })),
);

const runDefaults = mapping({ shell: nonEmpty, "working-directory": nonEmpty });
export const workflowDefaults = mapping({ run: runDefaults });
const jobDefaults = mapping({ run: within(places.jobDefaults, runDefaults) });

const snapshot = oneOf(
  nonEmpty,
  mapping({ "image-name!": nonEmpty, if: within(places.snapshotIf, string), version: nonEmpty }),
);

const stepCommon = {
  name: within(places.step, string),
  id: nonEmpty,
  "continue-on-error": within(places.step, boolean),
};

/** Words of our own, below one key that no other reader of these files takes for its own. */
const retry = (...reasons: readonly string[]): Definition =>
  mapping({ "max!": number, on: oneOf(among(...reasons), sequence(among(...reasons))), delay: nonEmpty });
const jobRetry = retry("runner-lost", "preempted", "failure", "timed-out");
const stepMillrace = mapping({ retry: retry("failure", "timed-out") });
const jobMillrace = mapping({
  "on-runner-loss": among("resume", "restart", "fail"),
  retry: oneOf(jobRetry, sequence(jobRetry)),
});

const stepWork = {
  ...stepCommon,
  "x-millrace": stepMillrace,
  if: within(places.stepIf, string),
  "timeout-minutes": within(places.step, number),
  env: within(places.step, mapOf(string)),
  background: boolean,
};

const simpleSteps: readonly Definition[] = [
  mapping({
    ...stepWork,
    "run!": within(places.step, string),
    "working-directory": within(places.step, string),
    shell: nonEmpty,
  }),
  mapping({ ...stepWork, "uses!": nonEmpty, with: within(places.step, mapOf(string)) }),
  mapping({ ...stepCommon, "wait!": oneOrMore }),
  mapping({ ...stepCommon, "wait-all!": oneOf(nothing, boolean) }),
  mapping({ ...stepCommon, "cancel!": nonEmpty }),
];

const steps = sequence(oneOf(...simpleSteps, mapping({ "parallel!": sequence(oneOf(...simpleSteps)) })));

const jobCommon = {
  name: within(places.cell, string),
  needs,
  if: within(places.jobIf, string),
  permissions,
  concurrency: jobConcurrency,
  strategy,
};

const job = mapping({
  ...jobCommon,
  "runs-on!": runsOn,
  "timeout-minutes": within(places.cell, number),
  "cancel-timeout-minutes": within(places.cell, number),
  "continue-on-error": within(places.cell, boolean),
  container,
  services: within(places.cell, mapOf(service)),
  env: within(places.jobEnv, mapOf(string)),
  environment,
  outputs: mapOf(within(places.jobOutputs, string)),
  defaults: jobDefaults,
  steps,
  snapshot,
  "x-millrace": jobMillrace,
});

const callJob = mapping({
  ...jobCommon,
  "uses!": nonEmpty,
  with: mapOf(within(places.cell, oneOf(string, boolean, number))),
  secrets: oneOf(mapOf(within(places.callSecrets, oneOf(string, boolean, number))), among("inherit")),
});

export const jobs: Definition = mapOf(oneOf(job, callJob));
