/** Builds run as the node's own user, and releases change machines: both are for operators, and for releasers. */
import type { DoorKinds, Refusal, Submitter } from "#shard/door-kinds.ts";
import { door, kinds, nodeLabels } from "./plan.ts";

const forOperators = ({ isOperator }: Submitter): Refusal =>
  isOperator ? undefined : "releases change machines and run builds as the node itself: that is for operators";

const mayApprove = ({ isOperator, roles }: Submitter): boolean => isOperator || roles?.has("approver") === true;

export const deployKinds: DoorKinds = {
  door,
  nodeLabels,
  job: forOperators,
  kinds: Object.fromEntries(Object.values(kinds).map((kind) => [kind, (_work, by) => forOperators(by)])),
  /** Approvals are counted by person, so a signal must name its own sender. */
  signal({ name, payload }, by) {
    if (name !== "approve" && name !== "reject") return "a release takes the signals approve and reject";
    if (!mayApprove(by)) return "waves are approved and rejected by approvers (the role approver) and operators";
    return payload === by.name ? undefined : `the payload must be the name of the sender, ${by.name}`;
  },
};
