/**
 * Executors that asked for work when there was none, held until there is work or their time is up. Executors with equal
 * labels form a group; groups, and the executors within them, take turns. An executor near the work goes first.
 */
import type { CommandOf } from "#kernel/model/command.ts";
import { takes, type Wanted } from "#kernel/ready/lanes.ts";
import type { Requester } from "#shard/host/pending-request.ts";
import type { ShardResponse } from "#shard/transport/protocol.ts";

type Reserve = CommandOf<"reserve">;

/** One request, though it may have arrived more than once: all senders get the same answer. */
export class Waiter implements Requester {
  readonly command: Reserve;
  readonly group: Group;
  readonly askers: Requester[] = [];
  untilMono = Number.NEGATIVE_INFINITY;

  constructor(command: Reserve, group: Group) {
    this.command = command;
    this.group = group;
  }

  settle(response: ShardResponse): void {
    for (const asker of this.askers.splice(0)) asker.settle(response);
  }
}

type Group = { readonly key: string; readonly offers: ReadonlySet<string>; readonly waiters: Set<Waiter> };

/** A group's members can do the same work: if this many of them found nothing, the others are not tried. */
const fruitlessMax = 2;

const askersMax = 16;

export class Waiters {
  readonly #max: number;
  readonly #groups = new Map<string, Group>();
  readonly #byNonce = new Map<string, Waiter>();
  readonly #byExecutor = new Map<string, Set<Waiter>>();
  #nextUntilMono = Number.POSITIVE_INFINITY;

  constructor(waitersMax: number) {
    this.#max = waitersMax;
  }

  get size(): number {
    return this.#byNonce.size;
  }

  /** False when there are too many. */
  add(command: Reserve, asker: Requester, untilMono: number): boolean {
    let waiter = this.#byNonce.get(nonceOf(command));
    if (!waiter) {
      if (this.size >= this.#max) return false;
      waiter = new Waiter(command, this.#groupOf(command));
      this.#byNonce.set(nonceOf(command), waiter);
      waiter.group.waiters.add(waiter);
      const { executor } = command;
      this.#byExecutor.set(executor, (this.#byExecutor.get(executor) ?? new Set()).add(waiter));
    }
    // Many copies of one request come from a sender that gave up on earlier answers: a few may wait.
    if (waiter.askers.length >= askersMax) return false;
    waiter.askers.push(asker);
    waiter.untilMono = Math.max(waiter.untilMono, untilMono);
    this.#nextUntilMono = Math.min(this.#nextUntilMono, waiter.untilMono);
    return true;
  }

  /** A sender has disconnected; when the last one has, the request is withdrawn. */
  leave(command: Reserve, asker: Requester): boolean {
    const waiter = this.#byNonce.get(nonceOf(command));
    const at = waiter?.askers.indexOf(asker) ?? -1;
    if (!waiter || at === -1) return false;
    waiter.askers.splice(at, 1);
    if (waiter.askers.length === 0) this.remove(waiter);
    return true;
  }

  remove(waiter: Waiter): void {
    this.#byNonce.delete(nonceOf(waiter.command));
    const { group } = waiter;
    group.waiters.delete(waiter);
    if (group.waiters.size === 0) this.#groups.delete(group.key);
    const { executor } = waiter.command;
    const own = this.#byExecutor.get(executor);
    own?.delete(waiter);
    if (own?.size === 0) this.#byExecutor.delete(executor);
  }

  /** Iterates over the executors that take such work, each at most once, groups in turn. */
  turn(wanted: Wanted): { next(near?: string): Waiter | undefined; fruitless(): void } {
    const tried = new Set<Waiter>();
    const vain = new Map<Group, number>();
    let last: Group | undefined;
    /** The first of them, if it has not been tried: tried ones are all at the back. */
    const untried = (waiters: ReadonlySet<Waiter> | undefined): Waiter | undefined => {
      const [waiter] = waiters ?? [];
      if (!waiter || tried.has(waiter) || (vain.get(waiter.group) ?? 0) >= fruitlessMax) return undefined;
      return takes(waiter.group.offers, wanted) ? waiter : undefined;
    };
    const inTurn = (): Waiter | undefined => {
      for (const { waiters } of this.#groups.values()) {
        const waiter = untried(waiters);
        if (waiter) return waiter;
      }
      return undefined;
    };
    return {
      next: (near) => {
        const waiter = (near === undefined ? undefined : untried(this.#byExecutor.get(near))) ?? inTurn();
        if (!waiter) return undefined;
        const { group } = waiter;
        tried.add(waiter);
        toTheBack(group.waiters, waiter);
        this.#groups.delete(group.key);
        this.#groups.set(group.key, group);
        last = group;
        return waiter;
      },
      fruitless: () => {
        if (last) vain.set(last, (vain.get(last) ?? 0) + 1);
      },
    };
  }

  /** Removes and returns those whose time is up. */
  expired(mono: number): readonly Waiter[] {
    if (mono < this.#nextUntilMono) return [];
    const all = [...this.#byNonce.values()];
    const expired = all.filter(({ untilMono }) => untilMono <= mono);
    for (const waiter of expired) this.remove(waiter);
    const later = all.filter(({ untilMono }) => untilMono > mono);
    this.#nextUntilMono = later.reduce((least, { untilMono }) => Math.min(least, untilMono), Number.POSITIVE_INFINITY);
    return expired;
  }

  clear(): readonly Waiter[] {
    const all = [...this.#byNonce.values()];
    this.#byNonce.clear();
    this.#byExecutor.clear();
    this.#groups.clear();
    return all;
  }

  #groupOf({ offers, tenant }: Reserve): Group {
    const key = JSON.stringify([offers.toSorted(), tenant]);
    let group = this.#groups.get(key);
    if (!group) {
      group = { key, offers: new Set(offers), waiters: new Set() };
      this.#groups.set(key, group);
    }
    return group;
  }
}

const nonceOf = ({ executor, nonce }: Reserve): string => `${executor}\n${nonce}`;

function toTheBack<T>(line: Set<T>, one: T): void {
  line.delete(one);
  line.add(one);
}
