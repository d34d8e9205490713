/** Work of this door runs as the node's own user, who can read what every tenant has: it is for operators. */
import type { DoorKinds, Refusal, SignalTarget, Submitter } from "#shard/door-kinds.ts";
import type { ShellJob } from "./request.ts";
import { door, kinds, planLabel, taskLabel } from "./plan.ts";

const forOperators = ({ isOperator }: Submitter): Refusal =>
  isOperator
    ? undefined
    : "shell work runs as the node itself: that is for operators; others run actions, in a sandbox";

const reasonLengthMax = 4_000;

/** A specification that the store has and the view does not is not judged: a command ignores what it does not take. */
function takes(to: SignalTarget | undefined, name: string): boolean {
  if (!to) return false;
  try {
    const stage = (JSON.parse(to.spec) as ShellJob).stages.find((each) => each.name === to.stage);
    return Object.hasOwn(stage?.signals ?? {}, name);
  } catch {
    return to.spec !== "";
  }
}

export const shellDoorKinds: DoorKinds = {
  door,
  nodeLabels: [taskLabel, planLabel],
  checkpoints: [kinds.command],
  job: forOperators,
  kinds: Object.fromEntries(Object.values(kinds).map((kind) => [kind, (_work, by) => forOperators(by)])),
  signal({ name, payload }, _by, to) {
    if (name !== "approve" && name !== "reject" && !takes(to, name))
      return "a gate takes the signals approve and reject, a command those that its job file names under signals";
    return payload.length > reasonLengthMax ? `a reason has at most ${reasonLengthMax} characters` : undefined;
  },
};
