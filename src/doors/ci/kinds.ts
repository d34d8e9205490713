/** Runs are made by the door's own calls, which check what a run may do: others may not put one together by hand. */
import type { DoorKinds, Refusal, Submitter } from "#shard/door-kinds.ts";
import { containersLabel, sharedContainersLabel } from "./containers/host.ts";
import { door, kinds, planLabel, sandboxLabel, taskLabel } from "./plan.ts";

const byDispatch = ({ isOperator }: Submitter): Refusal =>
  isOperator ? undefined : "runs of workflows are started by POST /v1/repositories/{owner}/{name}/dispatches";

export const ciKinds: DoorKinds = {
  door,
  nodeLabels: [taskLabel, planLabel, sandboxLabel, containersLabel, sharedContainersLabel],
  job: byDispatch,
  kinds: Object.fromEntries(Object.values(kinds).map((kind) => [kind, (_work, by) => byDispatch(by)])),
  signal: ({ name }) => `a run takes no signal ${name}`,
};
