/**
 * Chooses the shard to ask for work next. Usually one with ready tasks, drawn by the weight of their tenants; every few
 * times the one not asked for the longest, so that no shard starves (K10).
 */
import type { ShardId } from "#base/ids.ts";
import type { Random } from "#base/random.ts";

const rotateEvery = 3;

export class Visits {
  readonly #random: Random;
  /** Least recently visited first. */
  readonly #order: Set<ShardId>;
  readonly #weights = new Map<ShardId, number>();
  #turns = 0;

  constructor(shards: number, random: Random) {
    this.#random = random;
    this.#order = new Set(Array.from({ length: shards }, (_, shard) => shard));
  }

  /** Sets what is known about the shard: the total weight of tenants with ready tasks, 0 for none. */
  learn(shard: ShardId, readyWeight: number): void {
    if (readyWeight > 0) this.#weights.set(shard, readyWeight);
    else this.#weights.delete(shard);
  }

  isReady(shard: ShardId): boolean {
    return this.#weights.has(shard);
  }

  /** Whether a shard known to have work is not being visited. */
  hasReady(busy: ReadonlySet<ShardId>): boolean {
    for (const shard of this.#weights.keys()) if (!busy.has(shard)) return true;
    return false;
  }

  /** A shard known to have work; undefined if there is none. */
  nextReady(busy: ReadonlySet<ShardId>): ShardId | undefined {
    return this.#draw(busy);
  }

  /** Undefined if all shards are being visited. */
  next(busy: ReadonlySet<ShardId>): ShardId | undefined {
    this.#turns += 1;
    const drawn = this.#turns % rotateEvery === 0 ? undefined : this.#draw(busy);
    const shard = drawn ?? this.#longestAgo(busy);
    if (shard !== undefined && this.#order.delete(shard)) this.#order.add(shard);
    return shard;
  }

  #draw(busy: ReadonlySet<ShardId>): ShardId | undefined {
    const candidates = [...this.#weights].filter(([shard]) => !busy.has(shard));
    let left = this.#random.fraction() * candidates.reduce((sum, [, weight]) => sum + weight, 0);
    return candidates.find(([, weight]) => (left -= weight) < 0)?.[0];
  }

  #longestAgo(busy: ReadonlySet<ShardId>): ShardId | undefined {
    for (const shard of this.#order) if (!busy.has(shard)) return shard;
    return undefined;
  }
}
