/**
 * The last number given in each series, by tenant, door and name. A series lasts as long as its shard, whatever becomes
 * of its jobs: a number must never be given twice.
 */
import type { SeriesNumber } from "./model.ts";
import { bytesOfSeries } from "#kernel/memory/weigh.ts";

const keyOf = (door: string, name: string): string => `${door}\u0000${name}`;

export class SeriesTable {
  readonly #numbers = new Map<string, Map<string, number>>();

  get all(): ReadonlyMap<string, ReadonlyMap<string, number>> {
    return this.#numbers;
  }

  countOf(tenant: string): number {
    return this.#numbers.get(tenant)?.size ?? 0;
  }

  /** 0 for a series that has given none. */
  last(tenant: string, door: string, name: string): number {
    return this.#numbers.get(tenant)?.get(keyOf(door, name)) ?? 0;
  }

  /** Returns by how much the estimate of memory grows. */
  take(tenant: string, door: string, { name, number }: SeriesNumber): number {
    return this.restore(tenant, [[keyOf(door, name), number]]);
  }

  restore(tenant: string, numbers: Iterable<readonly [string, number]>): number {
    let known = this.#numbers.get(tenant);
    if (!known) this.#numbers.set(tenant, (known = new Map()));
    let bytes = 0;
    for (const [key, number] of numbers) {
      if (!known.has(key)) bytes += bytesOfSeries(tenant, key);
      known.set(key, number);
    }
    return bytes;
  }
}
