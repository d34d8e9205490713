/**
 * Work of this door comes from its own calls only. They check the action (timeout, platform, caller) and write it into
 * the task's spec, which workers and the publisher trust; specs from any other source are not trustworthy.
 */
import type { DoorKinds, Refusal } from "#shard/door-kinds.ts";
import { buildsDoor, planKind, planLabel, stepKind } from "./builds/plan-build.ts";
import { actionKind, door } from "./plan.ts";

const ownCallsOnly = (): Refusal =>
  "work of builds is made by the door's own calls, Execute and SubmitBuild: use one of them";

const noSignals = (): Refusal => "builds take no signals";

export const buildKinds: readonly DoorKinds[] = [
  { door, nodeLabels: [], job: ownCallsOnly, kinds: { [actionKind]: ownCallsOnly }, signal: noSignals },
  {
    door: buildsDoor,
    // The planner of a build says what its actions are and who requested them.
    nodeLabels: [planLabel],
    job: ownCallsOnly,
    kinds: { [stepKind]: ownCallsOnly, [planKind]: ownCallsOnly },
    signal: noSignals,
  },
];
