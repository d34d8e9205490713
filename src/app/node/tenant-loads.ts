/**
 * Whose work the shards of this node are: the part of each tenant in a shard's logged events. Counted in one batch of a
 * few, since a part is all that is asked for.
 */
import type { ShardId } from "#base/ids.ts";
import type { SealedBatch } from "#shard/host/batch.ts";
import type { ShardObserver } from "#shard/host/observer.ts";
import type { HostedShard } from "#shard/host/shard.ts";

/** One batch of so many is counted. */
const everyBatch = 8;

/** By tenant, from 0 to 1: the part of the shard's events. */
export type TenantShares = ReadonlyMap<string, number>;

export class TenantLoads implements ShardObserver {
  #counts = new Map<ShardId, Map<string, number>>();
  #shares: ReadonlyMap<ShardId, TenantShares> = new Map();

  /** As of the last sample. */
  get shares(): ReadonlyMap<ShardId, TenantShares> {
    return this.#shares;
  }

  durable({ shard, state }: HostedShard, { stamp, jobs }: Pick<SealedBatch, "stamp" | "jobs">): void {
    if (stamp.seq % everyBatch !== 0) return;
    const counts = this.#counts.get(shard) ?? new Map<string, number>();
    this.#counts.set(shard, counts);
    for (const no of jobs) {
      const tenant = no === undefined ? undefined : state.jobs.get(no)?.tenant.name;
      if (tenant !== undefined) counts.set(tenant, (counts.get(tenant) ?? 0) + 1);
    }
  }

  gone({ shard }: HostedShard): void {
    this.#counts.delete(shard);
  }

  /** What came since the last one. A shard in which too little was counted keeps its shares. */
  sample(): void {
    const shares = new Map<ShardId, TenantShares>();
    for (const [shard, counts] of this.#counts) {
      const total = counts.values().reduce((sum, count) => sum + count, 0);
      const before = this.#shares.get(shard);
      if (total >= countedMin) {
        shares.set(shard, new Map([...counts].map(([tenant, count]) => [tenant, count / total])));
        counts.clear();
      } else if (before) shares.set(shard, before);
    }
    this.#shares = shares;
  }
}

const countedMin = 20;
