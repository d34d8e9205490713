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
