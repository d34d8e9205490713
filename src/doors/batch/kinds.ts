/** Queries read files of the node's machine with the node's own rights: they are for operators. */
import type { DoorKinds, Refusal, Submitter } from "#shard/door-kinds.ts";
import { door, kinds, planLabel, taskLabel } from "./plan.ts";

const forOperators = ({ isOperator }: Submitter): Refusal =>
  isOperator ? undefined : "a query reads files as the node itself: that is for operators";

export const batchDoorKinds: DoorKinds = {
  door,
  nodeLabels: [taskLabel, planLabel],
  job: forOperators,
  kinds: Object.fromEntries(Object.values(kinds).map((kind) => [kind, (_work, by) => forOperators(by)])),
  signal: () => "a batch job takes no signals",
};
