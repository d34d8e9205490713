/** Executors as runners of CI, in the words of workflows. Pure. */
import type { z } from "zod";
import type { ExecutorView } from "#kernel/read/query.ts";
import { onlyPlans } from "#kernel/ready/lanes.ts";
import { sandboxLabel, taskLabel } from "#doors/ci/plan.ts";
import { groupsIn } from "#doors/ci/queues.ts";
import { runnerLabels } from "#doors/ci/why/labels.ts";
import type { Runner } from "./endpoints.ts";

export type RunnerView = z.input<typeof Runner>;

/** Each asks several shards: it is one runner, with the jobs that it has in all of them. */
export function runnersOf(seen: Iterable<ExecutorView>, nowMs: number): readonly RunnerView[] {
  const runners = new Map<string, RunnerView>();
  for (const view of seen) {
    if (!view.offers.includes(taskLabel) || view.offers.includes(onlyPlans)) continue;
    const [one, other] = [runnerOf(view, nowMs), runners.get(view.executor)];
    runners.set(view.executor, other ? both(other, one) : one);
  }
  return [...runners.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function runnerOf({ executor, offers, claims, drained, seenAgoMs }: ExecutorView, nowMs: number): RunnerView {
  const region = offers.find((label) => label.startsWith("region="))?.slice("region=".length);
  return {
    name: executor,
    labels: runnerLabels(offers).toSorted(),
    groups: groupsIn(offers).toSorted(),
    ...(region !== undefined && { region }),
    running: claims,
    isSandboxed: offers.includes(sandboxLabel),
    hasContainers: offers.some((label) => label.startsWith("containers=")),
    ...(drained !== undefined && { drained }),
    seenAt: new Date(nowMs - seenAgoMs).toISOString(),
  };
}

function both(one: RunnerView, other: RunnerView): RunnerView {
  const [older, newer] = one.seenAt < other.seenAt ? [one, other] : [other, one];
  return { ...older, ...newer, running: older.running + newer.running };
}

export function groupsOf(runners: readonly RunnerView[]) {
  const groups = new Map<string, { readonly runners: string[]; readonly labels: Set<string> }>();
  for (const { name, labels, groups: of } of runners)
    for (const group of of) {
      const found = groups.get(group) ?? { runners: [], labels: new Set() };
      groups.set(group, found);
      found.runners.push(name);
      for (const label of labels) found.labels.add(label);
    }
  const named = [...groups].map(([group, one]) => ({
    group,
    runners: one.runners,
    labels: [...one.labels].toSorted(),
  }));
  return named.toSorted((a, b) => (a.group < b.group ? -1 : 1));
}
