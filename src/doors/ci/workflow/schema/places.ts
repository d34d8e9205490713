/** Which contexts and functions expressions may use at which place (CI-32); the table of docs/reference/ci.md. */
import {
  type Availability,
  availability,
  hashFiles,
  jobStatus,
  stepStatus,
} from "#doors/ci/workflow/expression/availability.ts";

const run = ["github", "inputs", "vars"];
const job = [...run, "needs"];
const cell = [...job, "strategy", "matrix"];
const step = [...cell, "secrets", "steps", "job", "runner", "env"];

export const places = {
  runName: availability(run),
  workflowEnv: availability([...run, "secrets"]),
  workflowConcurrency: availability(run),
  callInputDefault: availability(run),
  callOutput: availability([...run, "jobs"]),
  jobIf: availability(job, jobStatus),
  strategy: availability(job),
  cell: availability(cell),
  jobEnv: availability([...cell, "secrets"]),
  jobDefaults: availability([...cell, "env"]),
  environmentUrl: availability([...cell, "steps", "job", "runner", "env"]),
  jobOutputs: availability(step),
  callSecrets: availability([...job, "secrets", "strategy", "matrix"]),
  snapshotIf: availability(cell),
  credentials: availability([...run, "secrets", "env"]),
  containerEnv: availability(step),
  stepIf: availability([...cell, "steps", "job", "runner", "env"], [...stepStatus, hashFiles]),
  step: availability(step, [hashFiles]),
  // inside an action there are no secrets, needs or matrix of the caller by these names, but its own inputs
  actionOutput: availability([...run, "strategy", "matrix", "job", "runner", "env", "steps"]),
  actionStep: availability([...run, "strategy", "matrix", "steps", "job", "runner", "env"], [hashFiles]),
  actionStepIf: availability(
    [...run, "strategy", "matrix", "steps", "job", "runner", "env"],
    [...stepStatus, hashFiles],
  ),
  actionRunsIf: availability(
    [...run, "strategy", "matrix", "steps", "job", "runner", "env"],
    [...stepStatus, hashFiles],
  ),
  actionInputDefault: availability([...run, "strategy", "matrix", "job", "runner"], [hashFiles]),
} as const satisfies Record<string, Availability>;

const byName = new Map<string, Availability>(Object.values(places).map((place) => [place.name, place]));

/** The availability that a checked node names. */
export function placeNamed(name: string): Availability {
  const found = byName.get(name);
  if (!found) throw new Error(`no place has the availability "${name}"`);
  return found;
}
