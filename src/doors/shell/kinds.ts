/** Work of this door runs as the node's own user, who can read what every tenant has: it is for operators. */
import type { DoorKinds, Refusal, Submitter } from "#shard/door-kinds.ts";
import { door, kinds, planLabel, taskLabel } from "./plan.ts";

const forOperators = ({ isOperator }: Submitter): Refusal =>
  isOperator
    ? undefined
    : "shell work runs as the node itself: that is for operators; others run actions, in a sandbox";

const reasonLengthMax = 4_000;

export const shellDoorKinds: DoorKinds = {
  door,
  nodeLabels: [taskLabel, planLabel],
  job: forOperators,
  kinds: Object.fromEntries(Object.values(kinds).map((kind) => [kind, (_work, by) => forOperators(by)])),
  signal({ name, payload }) {
    if (name !== "approve" && name !== "reject") return "a gate takes the signals approve and reject";
    return payload.length > reasonLengthMax ? `a reason has at most ${reasonLengthMax} characters` : undefined;
  },
};
