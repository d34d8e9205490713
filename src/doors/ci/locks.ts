/**
 * Pure: concurrency groups (CI-60) as locks of the kernel. A run holds one, and a stage holds one. What a call asks
 * for is held by the one job that it leads to; where it leads to several, the whole run holds it, because nothing else
 * lasts from the first of them to the last.
 */
import { createHash } from "node:crypto";
import { Fault } from "#base/fault.ts";
import type { LockSpec } from "#kernel/model/model.ts";
import type { CallJob, Workflow } from "#doors/ci/workflow/compile/model.ts";
import { Dictionary } from "#doors/ci/workflow/expression/value.ts";
import { calledFrame } from "#doors/ci/workflow/plan/called.ts";
import {
  cellContexts,
  type CellPlan,
  concurrencyOf,
  type Frame,
  jobContexts,
  type JobFacts,
} from "#doors/ci/workflow/plan/job-plan.ts";
import { leavesOf } from "#doors/ci/workflow/plan/leaves.ts";
import type { Level } from "#doors/ci/workflow/plan/replay.ts";
import type { Node } from "#doors/ci/workflow/yaml/node.ts";

export type Group = NonNullable<CellPlan["concurrency"]>;

const waitingRunsMax = 100;

/** Group names are long and in any case; lock names are neither. */
export function lockOf({ group, cancelsInProgress, queue }: Group, repository: string | undefined): LockSpec {
  const hash = createHash("sha256").update(group.toLowerCase()).digest("hex").slice(0, 16);
  const shown = group.replaceAll(/[^\x21-\x7e]/g, "_").slice(0, 100);
  return {
    name: `ci ${repository ?? ""} ${shown} ${hash}`,
    limit: 1,
    queueMax: queue === "max" ? waitingRunsMax : 1,
    cancelInProgress: cancelsInProgress,
  };
}

/** What the whole run holds: at most one run of a group runs, those behind it wait, one or a hundred of them. */
export function groupOfRun(frame: Frame): Group | undefined {
  return onlyOne([groupOfWorkflow(frame), ...groupsOfCalls(frame)], "the run");
}

/** What the stage of one job holds: its own group, or that of calls that lead to nothing else. */
export function groupOfStage(level: Level, callers: readonly CallJob[], cell: CellPlan | undefined): Group | undefined {
  const groups = [cell?.concurrency];
  let inner: Level | undefined = level;
  for (const { called } of callers.toReversed()) {
    if (!inner || !called || leavesOf(called.workflow).length > 1) break;
    groups.push(groupOfWorkflow(inner.frame), inner.cells.at(-1)?.concurrency);
    inner = inner.outer;
  }
  return onlyOne(groups, "a job");
}

function groupOfWorkflow({ workflow, github, vars, inputs }: Frame): Group | undefined {
  const contexts = new Dictionary([
    ["github", github],
    ["vars", vars],
    ["inputs", inputs],
  ]);
  return concurrencyOf(workflow.concurrency, { contexts }).concurrency;
}

/** Of calls that lead to several jobs, on every level. */
function groupsOfCalls(frame: Frame): readonly (Group | undefined)[] {
  return frame.workflow.jobs.flatMap((job) => {
    if (job.kind !== "call" || !job.called || leavesOf(job.called.workflow).length < 2) return [];
    if (!asksForGroups(job, job.called.workflow)) return [];
    checkKnown(job);
    const cell = { matrix: null, failFast: true, maxParallel: 1, index: 0, total: 1 };
    const contexts = cellContexts(jobContexts(job, frame, nothingYet), cell);
    const inner = calledFrame(job, frame, contexts);
    return [concurrencyOf(job.concurrency, { contexts }).concurrency, groupOfWorkflow(inner), ...groupsOfCalls(inner)];
  });
}

const nothingYet: JobFacts = { ends: new Map(), isCancelled: false };

const asksForGroups = (job: CallJob, { concurrency, jobs }: Workflow): boolean =>
  job.concurrency !== undefined ||
  concurrency !== undefined ||
  jobs.some((inner) => inner.kind === "call" && inner.called && asksForGroups(inner, inner.called.workflow));

/** Nodes also say which contexts they may use. */
const withoutContexts = (key: string, value: unknown): unknown => (key === "available" ? undefined : value);

/** The run takes its lock before any job has ended: what only jobs tell cannot be part of a group's name. */
function checkKnown(job: CallJob): void {
  const tells = (node: Node | undefined): boolean =>
    node !== undefined && /\b(?:needs|matrix|strategy)\b/i.test(JSON.stringify(node, withoutContexts));
  if (!job.strategy && ![job.concurrency, job.with].some((node) => tells(node))) return;
  throw new Fault("invalid", "plan the run", {
    job: job.id,
    why: "a called workflow of several jobs has a concurrency group that depends on needs or a matrix",
    try: "give the jobs of the called workflow groups of their own, or call a workflow of one job",
  });
}

function onlyOne(groups: readonly (Group | undefined)[], who: string): Group | undefined {
  const [first, ...others] = groups.flatMap((group) => group ?? []);
  const other = others.find(({ group }) => group.toLowerCase() !== first?.group.toLowerCase());
  if (first && other)
    throw new Fault("invalid", "plan the run", {
      why: `${who} can be in one concurrency group, and two are asked for: ${first.group} and ${other.group}`,
      try: "use the same group on the calling job and in the workflow that it calls",
    });
  return first;
}
