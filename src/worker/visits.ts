/**
 * Which shard to ask for work next. Mostly one with ready work, drawn by the weight of the tenants that have some;
 * every few times whichever was not asked for the longest, so that none is forgotten whatever the weights say (K10).
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

  /** What is known of the shard: the weights of the tenants with ready work, 0 for none. */
  learn(shard: ShardId, readyWeight: number): void {
    if (readyWeight > 0) this.#weights.set(shard, readyWeight);
    else this.#weights.delete(shard);
  }

  /** Whether there is one that is known to have work, and nobody visits. */
  hasReady(busy: ReadonlySet<ShardId>): boolean {
    for (const shard of this.#weights.keys()) if (!busy.has(shard)) return true;
    return false;
  }

  /** One that is known to have work; undefined when there is none. */
  nextReady(busy: ReadonlySet<ShardId>): ShardId | undefined {
    return this.#draw(busy);
  }

  /** Undefined when all of them are being visited. */
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
