/**
 * Ready work, indexed by requirement class, then tenant, then priority, then age.
 *
 * A reserve reads only classes that the executor satisfies. The tenant with the fewest claims for its weight goes next,
 * and tenants with equal shares take turns; within a tenant the highest priority goes first, then the oldest. A class's
 * heap is repaired when it is read: serving a tenant moves it back in every class, and updating all of its classes at
 * once would make each grant cost as many steps as the tenant has classes.
 */
import { assert } from "#base/assert.ts";
import type { Executor, Signature, Task, Tenant } from "#kernel/model/entities.ts";
import { takes, type Wanted } from "./lanes.ts";
import { insert, isBefore, listOf, older, ReadyClass, shareOf, unlink } from "./ready-queue.ts";
import type { PriorityList, TenantQueue } from "./ready-queue.ts";

const classesIdleMax = 1_000;
const signaturesMax = 1_000;

export class ReadyIndex {
  #classes = new Map<string, ReadyClass>();
  #list: ReadyClass[] = [];
  #idle = 0;
  readonly #spares = new Map<ReadyClass, Set<Task>>();
  readonly #signatures = new Map<string, Signature>();
  readonly #classKeys = new KeyMemo();
  readonly #offerKeys = new KeyMemo();
  /** Classes that got work since the host last looked: their waiting executors must be woken. */
  readonly woken = new Set<ReadyClass>();
  /** The turn of the tenant served last: a tenant that returns after a rest starts from here. */
  virtual = 0;
  size = 0;
  /** Weights of the tenants with ready work. */
  readyWeight = 0;
  #nextOrder = 1;
  /** Entries looked at; a benchmark uses it to show that the cost of a command stays flat. */
  touched = 0;

  get classes(): number {
    return this.#classes.size - this.#idle;
  }

  /** Classes with queued work, in no particular order; for statistics. */
  waiting(): readonly ReadyClass[] {
    return this.#list.filter(({ ready }) => ready > 0);
  }

  hasClass(wanted: Wanted): boolean {
    return this.#classes.has(classKey(wanted));
  }

  /** Queues the task: at the end, or where its `order` from an earlier turn says. */
  enqueue(task: Task): void {
    assert(task.list === undefined, "a task is queued only once");
    const tenant = task.stage.job.tenant;
    const queue = this.#queueOf(tenant, this.#classOf(task));
    if (tenant.ready === 0) {
      // A tenant that returns after a rest starts where the others are: rest earns no credit (K10 for the others).
      tenant.virtual = Math.max(tenant.virtual, this.virtual);
      this.readyWeight += tenant.weight;
    }
    tenant.ready += 1;
    this.size += 1;
    if (task.order === 0) task.order = this.#nextOrder++;
    insert(listOf(queue, task.stage.job.priority), task);
    this.#count(queue.class, 1);
    queue.size += 1;
    if (task.array) task.array.queued += 1;
    if (queue.size === 1 && !tenant.parked) this.#join(queue);
    this.woken.add(queue.class);
    this.touched += 1;
  }

  dequeue(task: Task): void {
    const list = task.list;
    if (!list) return this.#dropSpare(task);
    const { queue } = list;
    unlink(list, task);
    if (list.size === 0) queue.lists.splice(queue.lists.indexOf(list), 1);
    queue.size -= 1;
    if (task.array) task.array.queued -= 1;
    this.#count(queue.class, -1);
    queue.tenant.ready -= 1;
    this.size -= 1;
    if (queue.tenant.ready === 0) this.readyWeight -= queue.tenant.weight;
    if (queue.size === 0) {
      if (queue.heapAt !== -1) queue.class.heap.remove(queue);
      queue.tenant.queues.delete(queue.class);
    }
    this.touched += 1;
  }

  /**
   * Offers a second attempt at a running task. It is in no queue: only an executor that finds nothing else gets it, and
   * never the one that runs the first attempt.
   */
  offerSpare(task: Task): void {
    const readyClass = this.#classOf(task);
    let spares = this.#spares.get(readyClass);
    if (!spares) this.#spares.set(readyClass, (spares = new Set()));
    spares.add(task);
    this.#count(readyClass, 1);
    this.woken.add(readyClass);
  }

  isSpare(task: Task): boolean {
    return this.#sparesOf(task)?.has(task) ?? false;
  }

  #dropSpare(task: Task): void {
    if (this.#spares.size === 0) return;
    const readyClass = this.#classes.get(classKey(wantedBy(task)));
    const spares = readyClass && this.#spares.get(readyClass);
    if (!spares?.delete(task)) return;
    this.#count(readyClass as ReadyClass, -1);
    if (spares.size === 0) this.#spares.delete(readyClass as ReadyClass);
  }

  #sparesOf(task: Task): ReadonlySet<Task> | undefined {
    const readyClass = this.#classes.get(classKey(wantedBy(task)));
    return readyClass && this.#spares.get(readyClass);
  }

  /** Moves a task to the list of its job's new priority. */
  reprioritize(task: Task): void {
    if (!task.list) return;
    this.dequeue(task);
    this.enqueue(task);
  }

  /** Takes a tenant that is out of quota out of every heap, or puts it back. */
  park(tenant: Tenant, parked: boolean): void {
    if (tenant.parked === parked) return;
    tenant.parked = parked;
    for (const queue of tenant.queues.values()) {
      this.touched += 1;
      if (parked) {
        if (queue.heapAt !== -1) queue.class.heap.remove(queue);
      } else {
        this.#join(queue);
        this.woken.add(queue.class);
      }
    }
  }

  /** The tenant got one more claim: it moves back, and `virtual`, from which returning tenants start, moves on. */
  serve(tenant: Tenant): void {
    this.virtual = Math.max(this.virtual, tenant.virtual);
    tenant.virtual += 1 / tenant.weight;
  }

  /** The tenant has one claim less: it moves forward in every class in which it has work. */
  freed(tenant: Tenant): void {
    const share = shareOf(tenant);
    for (const queue of tenant.queues.values()) {
      // If the heap has not looked since the tenant was last served, the tenant's old position is early enough.
      if (queue.heapAt === -1 || queue.share <= share) continue;
      this.touched += 1;
      queue.share = share;
      queue.turn = tenant.virtual;
      queue.class.heap.rise(queue);
    }
  }

  /** For restoring a snapshot: tasks come with their positions, and new ones go behind them. */
  get nextOrder(): number {
    return this.#nextOrder;
  }

  resumeOrder(nextOrder: number): void {
    this.#nextOrder = Math.max(this.#nextOrder, nextOrder);
  }

  setWeight(tenant: Tenant, weight: number): void {
    if (tenant.ready > 0) this.readyWeight += weight - tenant.weight;
    tenant.weight = weight;
    for (const queue of tenant.queues.values()) {
      if (queue.heapAt === -1) continue;
      queue.class.heap.remove(queue);
      this.#join(queue);
    }
  }

  /** The next task for an executor, or undefined. Changes nothing (apart from repairing the heaps). */
  pick(
    executor: Executor,
    signature: Signature,
    wanted: { readonly tenant: Tenant | undefined; readonly prefer: readonly string[]; readonly lookahead: number },
  ): Task | undefined {
    const tenant = wanted.tenant ?? this.#nextTenant(signature);
    const task = tenant && !tenant.parked ? this.#best(tenant, signature, wanted) : undefined;
    return task ?? this.#spare(executor, signature, wanted.tenant);
  }

  #nextTenant(signature: Signature): Tenant | undefined {
    let first: TenantQueue | undefined;
    for (const readyClass of signature.matched) {
      this.touched += 1;
      const queue = this.#firstOf(readyClass);
      if (queue && (!first || isBefore(queue, first))) first = queue;
    }
    return first?.tenant;
  }

  /**
   * Executors with equal labels satisfy the same classes: the result is cached, and extended when a new class appears.
   */
  signature(offers: readonly string[]): Signature {
    const key = this.#offerKeys.of(offers);
    let signature = this.#signatures.get(key);
    if (!signature) {
      if (this.#signatures.size >= signaturesMax) this.#signatures.clear();
      signature = { offers: new Set(offers), matched: new Set(), checked: 0 };
      this.#signatures.set(key, signature);
    }
    for (; signature.checked < this.#list.length; signature.checked += 1) {
      const readyClass = this.#list[signature.checked] as ReadyClass;
      if (takes(signature.offers, readyClass)) signature.matched.add(readyClass);
    }
    return signature;
  }

  #count(readyClass: ReadyClass, change: 1 | -1): void {
    if (readyClass.ready === 0) this.#idle -= 1;
    readyClass.ready += change;
    if (readyClass.ready === 0) this.#idle += 1;
  }

  #spare(executor: Executor, signature: Signature, tenant: Tenant | undefined): Task | undefined {
    for (const [readyClass, spares] of this.#spares) {
      if (!signature.matched.has(readyClass)) continue;
      for (const task of spares) {
        this.touched += 1;
        const owner = task.stage.job.tenant;
        if (task.claim?.executor !== executor && !owner.parked && (!tenant || tenant === owner)) return task;
      }
    }
    return undefined;
  }

  #firstOf(readyClass: ReadyClass): TenantQueue | undefined {
    for (;;) {
      const queue = readyClass.heap.top();
      if (!queue || (queue.share === shareOf(queue.tenant) && queue.turn === queue.tenant.virtual)) return queue;
      queue.share = shareOf(queue.tenant);
      queue.turn = queue.tenant.virtual;
      readyClass.heap.sink(queue);
      this.touched += 1;
    }
  }

  #best(
    tenant: Tenant,
    signature: Signature,
    wanted: { readonly prefer: readonly string[]; readonly lookahead: number },
  ): Task | undefined {
    let list: PriorityList | undefined;
    for (const queue of tenant.queues.values()) {
      this.touched += 1;
      if (!signature.matched.has(queue.class)) continue;
      const top = queue.lists[0];
      if (top && (!list || top.priority > list.priority || (top.priority === list.priority && older(top, list))))
        list = top;
    }
    if (!list) return undefined;
    let chosen: Task | undefined;
    let looked = 0;
    for (let task = list.head; task && looked < wanted.lookahead; task = task.next, looked += 1) {
      this.touched += 1;
      chosen ??= task;
      if (wanted.prefer.length === 0) break;
      if (task.plan.affinity !== undefined && wanted.prefer.includes(task.plan.affinity)) return task;
    }
    return chosen;
  }

  #join(queue: TenantQueue): void {
    queue.share = shareOf(queue.tenant);
    queue.turn = queue.tenant.virtual;
    queue.class.heap.push(queue);
  }

  #classOf(task: Task): ReadyClass {
    const { requires } = task.template;
    const planning = isPlanning(task);
    const key = planning ? planKey(this.#classKeys.of(requires)) : this.#classKeys.of(requires);
    let readyClass = this.#classes.get(key);
    if (!readyClass) {
      if (this.#idle > classesIdleMax) this.#sweep();
      readyClass = new ReadyClass(key, { requires, planning });
      this.#classes.set(key, readyClass);
      this.#list.push(readyClass);
      this.#idle += 1;
    }
    return readyClass;
  }

  /** Removes classes without work; otherwise a hostile caller could create endless classes with ever new labels. */
  #sweep(): void {
    for (const readyClass of this.#list) if (readyClass.ready === 0) this.#classes.delete(readyClass.key);
    this.#list = [...this.#classes.values()];
    this.#idle = 0;
    this.#signatures.clear();
  }

  #queueOf(tenant: Tenant, readyClass: ReadyClass): TenantQueue {
    let queue = tenant.queues.get(readyClass);
    if (!queue) {
      queue = { tenant, class: readyClass, lists: [], size: 0, heapAt: -1, share: 0, turn: 0 };
      tenant.queues.set(readyClass, queue);
    }
    return queue;
  }
}

/** A planning task is the one that its stage does not count. */
const isPlanning = ({ index }: Task): boolean => index === -1;

export const wantedBy = (task: Task): Wanted => ({ requires: task.template.requires, planning: isPlanning(task) });

const classKey = ({ requires, planning }: Wanted): string => (planning ? planKey(keyOf(requires)) : keyOf(requires));

/** No label contains the character. */
const planKey = (key: string): string => `\u0001${key}`;

/** Labels are sorted and without repeats here (see validate.ts), so equal sets have equal keys. */
const keyOf = (labels: readonly string[]): string =>
  labels.length === 1 ? (labels[0] as string) : labels.join("\u0000");

/**
 * Most tasks and grants have the same label list object as the one before: joining it again would cost more than all
 * else.
 */
class KeyMemo {
  #labels: readonly string[] | undefined;
  #key = "";

  of(labels: readonly string[]): string {
    if (labels === this.#labels) return this.#key;
    this.#labels = labels;
    return (this.#key = keyOf(labels));
  }
}
