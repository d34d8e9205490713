/**
 * Who may submit queries. Those of operators read files with the node's own rights; those of others
 * what is granted to their tenant. What a query becomes, its tasks, only nodes plan.
 */
import type { DoorKinds, Refusal, RequestedWork, Submitter } from "#shard/door-kinds.ts";
import { door, kinds, planLabel, readJob, taskLabel } from "./plan.ts";

const forOperators = ({ isOperator }: Submitter): Refusal =>
  isOperator ? undefined : "tasks of a query are planned by nodes: submit the query itself";

/** The task that reads the query says with whose rights; its result is what all others follow from. */
function granted(work: RequestedWork, { isOperator }: Submitter): Refusal {
  if (isOperator) return undefined;
  if (!("tasks" in work) || !work.tasks.tasks) return "a query is one task to begin with";
  const { template, tasks } = work.tasks;
  if (!template.requires.includes(taskLabel)) return `a query requires ${taskLabel}`;
  return tasks.every(({ spec }) => readJob(spec)?.isGranted === true)
    ? undefined
    : "a query that reads files as the node itself is for operators; say granted: true to read what is granted to you";
}

/** Stages are planned by nodes alone. */
const byNodes = (work: RequestedWork, { isOperator }: Submitter): Refusal =>
  isOperator || ("plan" in work && work.plan.requires.includes(planLabel))
    ? undefined
    : `stages of a query require ${planLabel}`;

export const batchDoorKinds: DoorKinds = {
  door,
  nodeLabels: [taskLabel, planLabel],
  job: () => undefined,
  kinds: {
    [kinds.plan]: granted,
    [kinds.wave]: byNodes,
    [kinds.part]: (_work, by) => forOperators(by),
    [kinds.commit]: (_work, by) => forOperators(by),
  },
  signal: () => "a batch job takes no signals",
};
