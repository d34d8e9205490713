/** Pure: which node a task had best run on: the one where most of what it reads was written, and still lies. */
import type { TaskResult } from "./documents.ts";
import type { Stage } from "./plan/stage.ts";
import { packRange, type TaskPart } from "./plan/tasks.ts";
import { sharesIn } from "./stage-facts.ts";
import type { Results } from "./standing.ts";

/** Undefined where it does not matter. */
export function nearestNode(stage: Stage, { branch, slice }: TaskPart, results: Results): string | undefined {
  const bytesAt = new Map<string, number>();
  for (const input of stage.branches[branch]?.inputs ?? []) {
    if (input.from !== "stage") continue;
    const isPart = input.take === "part";
    const range = isPart ? packRange(slice, input.stage) : undefined;
    const all = results.get(input.stage) ?? [];
    for (const one of range ? all.slice(range.from, range.to) : all) {
      if (one.at === undefined) continue;
      const share = isPart && slice.by === "partition" ? shareOf(one, slice.from, slice.to) : 1;
      bytesAt.set(one.at, (bytesAt.get(one.at) ?? 0) + one.bytes * share);
    }
  }
  const [nearest, ...others] = [...bytesAt].toSorted(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
  return others.length > 0 ? nearest?.[0] : undefined;
}

function shareOf({ shares }: TaskResult, from: number, to: number): number {
  const all = sharesIn(shares);
  const sum = (list: readonly number[]): number => list.reduce((total, one) => total + one, 0);
  return sum(all.slice(from, to)) / Math.max(1, sum(all));
}
