/**
 * Executors that asked for work when there was none, held until there is or their time is up.
 * Those that offer the same are one group; groups and the executors within them take turns.
 */
import type { CommandOf } from "#kernel/command.ts";
import type { Settle } from "./host-batch.ts";

export type Waiter = {
  readonly command: CommandOf<"reserve">;
  readonly settle: Settle;
  readonly untilMono: number;
};

type Group = { readonly key: string; readonly offers: ReadonlySet<string>; readonly waiters: Set<Waiter> };

export class Waiters {
  readonly #max: number;
  readonly #groups = new Map<string, Group>();
  readonly #byNonce = new Map<string, Waiter>();
  #nextUntilMono = Number.POSITIVE_INFINITY;

  constructor(waitersMax: number) {
    this.#max = waitersMax;
  }

  get size(): number {
    return this.#byNonce.size;
  }

  /** False when there are too many. The same request asked again takes the place of the first, which is handed back. */
  add(waiter: Waiter): { readonly replaced: Waiter | undefined } | false {
    const replaced = this.#byNonce.get(nonceOf(waiter));
    if (replaced) this.remove(replaced);
    else if (this.size >= this.#max) return false;
    this.#groupOf(waiter).waiters.add(waiter);
    this.#byNonce.set(nonceOf(waiter), waiter);
    this.#nextUntilMono = Math.min(this.#nextUntilMono, waiter.untilMono);
    return { replaced };
  }

  remove(waiter: Waiter): boolean {
    if (this.#byNonce.get(nonceOf(waiter)) !== waiter) return false;
    this.#byNonce.delete(nonceOf(waiter));
    const group = this.#groupOf(waiter);
    group.waiters.delete(waiter);
    if (group.waiters.size === 0) this.#groups.delete(group.key);
    return true;
  }

  /** The next in turn that offers all of `requires` and has not been tried; it goes to the back of the line. */
  next(requires: readonly string[], tried: ReadonlySet<Waiter>): Waiter | undefined {
    for (const group of this.#groups.values()) {
      if (!requires.every((label) => group.offers.has(label))) continue;
      for (const waiter of group.waiters) {
        // Tried ones stand at the back, in one row.
        if (tried.has(waiter)) break;
        group.waiters.delete(waiter);
        group.waiters.add(waiter);
        this.#groups.delete(group.key);
        this.#groups.set(group.key, group);
        return waiter;
      }
    }
    return undefined;
  }

  /** Takes out those whose time is up. */
  expired(mono: number): readonly Waiter[] {
    if (mono < this.#nextUntilMono) return [];
    const all = [...this.#byNonce.values()];
    const expired = all.filter(({ untilMono }) => untilMono <= mono);
    for (const waiter of expired) this.remove(waiter);
    this.#nextUntilMono = all.reduce(
      (least, { untilMono }) => (untilMono > mono ? Math.min(least, untilMono) : least),
      Number.POSITIVE_INFINITY,
    );
    return expired;
  }

  clear(): readonly Waiter[] {
    const all = [...this.#byNonce.values()];
    this.#byNonce.clear();
    this.#groups.clear();
    return all;
  }

  #groupOf({ command }: Waiter): Group {
    const key = JSON.stringify([command.offers.toSorted(), command.tenant]);
    let group = this.#groups.get(key);
    if (!group) {
      group = { key, offers: new Set(command.offers), waiters: new Set() };
      this.#groups.set(key, group);
    }
    return group;
  }
}

const nonceOf = ({ command }: Waiter): string => `${command.executor}\n${command.nonce}`;
