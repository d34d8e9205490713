/** What listed tasks and arrays of tasks have in common. */
import type { ArrayPlan, TaskPlan, TaskSet } from "./model.ts";

const none: readonly TaskPlan[] = [];

/** The tasks that are listed one by one; none for an array. */
export const listedIn = (set: TaskSet | undefined): readonly TaskPlan[] => set?.tasks ?? none;

/** How many tasks the set has. Their numbers follow each other. */
export const sizeOf = (set: TaskSet | undefined): number => set?.array?.count ?? set?.tasks?.length ?? 0;

/** The key of the array's task at this place, counted from 0. */
export const arrayKey = ({ first = 0 }: ArrayPlan, place: number): string => String(first + place);

/** The keys of all tasks, in order. */
export function* keysOf(set: TaskSet): Generator<string, undefined> {
  if (set.array) for (let i = 0; i < set.array.count; i += 1) yield arrayKey(set.array, i);
  else for (const { key } of set.tasks) yield key;
  return undefined;
}

/** Whether two tasks have the same key. Arrays are compared by their ranges: they may have a million keys. */
export function repeatsKey(sets: readonly TaskSet[]): boolean {
  const ranges = sets.flatMap(({ array }) => (array && array.count > 0 ? [rangeOf(array)] : []));
  ranges.sort((a, b) => a.from - b.from);
  if (ranges.some(({ from }, i) => from < (ranges[i - 1]?.to ?? 0))) return true;
  const seen = new Set<string>();
  let listed = 0;
  for (const set of sets)
    for (const { key } of listedIn(set)) {
      listed += 1;
      seen.add(key);
      if (ranges.length === 0 || !/^(?:0|[1-9]\d{0,15})$/.test(key)) continue;
      if (isIn(ranges, Number(key))) return true;
    }
  return seen.size !== listed;
}

type Range = { readonly from: number; readonly to: number };

/** The ranges are sorted and do not overlap. */
function isIn(ranges: readonly Range[], index: number): boolean {
  let low = 0;
  let high = ranges.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ranges[middle] as Range).to <= index) low = middle + 1;
    else high = middle;
  }
  const found = ranges[low];
  return found !== undefined && index >= found.from;
}

const rangeOf = ({ first = 0, count }: ArrayPlan): Range => ({
  from: first,
  to: first + count,
});

type Sets = { readonly set?: TaskSet | undefined; readonly sets?: readonly TaskSet[] | undefined };

const noSets: readonly TaskSet[] = [];

/** The sets of a plan, or of the event that records it. */
export const setsOf = ({ set, sets }: Sets): readonly TaskSet[] => sets ?? (set ? [set] : noSets);

/** How many tasks they have together. */
export function countTasks(of: Sets): number {
  let count = 0;
  for (const set of setsOf(of)) count += sizeOf(set);
  return count;
}

/** The listed tasks of all sets, each with its place among all tasks: the first task's number plus that is its own. */
export function placedTasks(of: Sets): readonly (TaskPlan & { readonly place: number })[] {
  let before = 0;
  return setsOf(of).flatMap((set) => {
    const first = before;
    before += sizeOf(set);
    return listedIn(set).map((task, i) => ({ ...task, place: first + i }));
  });
}
