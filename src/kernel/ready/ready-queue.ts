/**
 * The queues of ready work: one for each tenant and class, in it a list for each priority, with tasks by age; and the
 * order in which tenants are served. `ReadyIndex` (ready.ts) decides which queue a task belongs to.
 */
import type { Task, Tenant } from "#kernel/model/entities.ts";
import { Heap } from "./heap.ts";
import type { Wanted } from "./lanes.ts";

export type PriorityList = {
  readonly queue: TenantQueue;
  readonly priority: number;
  head: Task | undefined;
  tail: Task | undefined;
  size: number;
};

/** One tenant's ready work of one class. */
export type TenantQueue = {
  readonly tenant: Tenant;
  readonly class: ReadyClass;
  /** Highest priority first; empty lists are removed. */
  readonly lists: PriorityList[];
  size: number;
  heapAt: number;
  /** The tenant's share and turn when the heap last looked: never later in the order than they are now. */
  share: number;
  turn: number;
};

export class ReadyClass {
  readonly key: string;
  readonly requires: readonly string[];
  readonly planning: boolean;
  readonly heap = new Heap<TenantQueue>(isBefore);
  ready = 0;

  constructor(key: string, { requires, planning }: Wanted) {
    this.key = key;
    this.requires = requires;
    this.planning = planning;
  }

  /** The preferred executor or data of the next task, if it has such a hint. */
  get affinity(): string | undefined {
    return this.heap.top()?.lists[0]?.head?.plan.affinity;
  }
}

/** The tenant's claims divided by its weight. */
export const shareOf = (tenant: Tenant): number => tenant.running / tenant.weight;

export const isBefore = (a: TenantQueue, b: TenantQueue): boolean =>
  a.share !== b.share ? a.share < b.share : a.turn !== b.turn ? a.turn < b.turn : a.tenant.ordinal < b.tenant.ordinal;

/** Whether the first tenant is served before the second where both have work. */
export function goesBefore(a: Tenant, b: Tenant): boolean {
  if (shareOf(a) !== shareOf(b)) return shareOf(a) < shareOf(b);
  return a.virtual !== b.virtual ? a.virtual < b.virtual : a.ordinal < b.ordinal;
}

export const older = (a: PriorityList, b: PriorityList): boolean => (a.head?.order ?? 0) < (b.head?.order ?? 0);

export function listOf(queue: TenantQueue, priority: number): PriorityList {
  const { lists } = queue;
  let at = 0;
  while (at < lists.length && (lists[at] as PriorityList).priority > priority) at += 1;
  const found = lists[at];
  if (found && found.priority === priority) return found;
  const list: PriorityList = { queue, priority, head: undefined, tail: undefined, size: 0 };
  lists.splice(at, 0, list);
  return list;
}

/** Inserts by `order`, searching from the end: most tasks are the newest. A retry searches past a few neighbours. */
export function insert(list: PriorityList, task: Task): void {
  let after = list.tail;
  let looked = 0;
  while (after && after.order > task.order && looked < 64) {
    after = after.prev;
    looked += 1;
  }
  // After that many neighbours stop searching and put the task at the head: it is older than all that it passed.
  if (after && after.order > task.order) after = undefined;
  task.list = list;
  task.prev = after;
  task.next = after ? after.next : list.head;
  if (task.next) task.next.prev = task;
  else list.tail = task;
  if (after) after.next = task;
  else list.head = task;
  list.size += 1;
}

export function unlink(list: PriorityList, task: Task): void {
  if (task.prev) task.prev.next = task.next;
  else list.head = task.next;
  if (task.next) task.next.prev = task.prev;
  else list.tail = task.prev;
  task.list = undefined;
  task.prev = undefined;
  task.next = undefined;
  list.size -= 1;
}
