/**
 * Watches how loaded the node's shards are, says which one is hot and, where the configuration has a rule, keeps this
 * node for it: then its other shards go to other nodes, and the hot one does not move.
 */
import type { Clock } from "#base/clock.ts";
import type { ShardId } from "#base/ids.ts";
import type { Isolation } from "./actions/isolation.ts";
import { ShardLoads, type CountedShard, type ShardLoad } from "./shard-loads.ts";

/** From this share of the event loop's time on, a shard is called hot, with a rule or without one. */
export const hotShare = 0.3;
const everyMs = 5_000;
/** How often in a row a shard must be above the rule's share, and how often below half of it, before anything moves. */
const hotLooks = 6;
const coolLooks = 60;

export type HotShardPorts = {
  readonly node: string;
  readonly clock: Clock;
  readonly shards: () => Iterable<CountedShard>;
  /** The part of the time since the last call in which the event loop ran something, from 0 to 1. */
  readonly busy: () => number;
  readonly isolation: Pick<Isolation, "all" | "isolate" | "release">;
  /** Called after each look, with the loads that it found. */
  readonly looked?: () => Promise<void>;
  /** The share from which on a shard is isolated by rule; undefined: never. */
  readonly isolateAt: number | undefined;
  readonly log: (line: string) => void;
};

export type HotShard = { readonly shard: ShardId } & ShardLoad;

export class HotShards {
  readonly #ports: HotShardPorts;
  readonly #loads = new ShardLoads();
  readonly #ending = new AbortController();
  #hot: HotShard | undefined;
  #lookedMono: number;
  /** In how many looks in a row this shard was the hottest and above the rule's share. */
  #candidate: { readonly shard: ShardId; readonly looks: number } | undefined;
  readonly #coolLooks = new Map<ShardId, number>();

  constructor(ports: HotShardPorts) {
    this.#ports = ports;
    this.#lookedMono = ports.clock.monotonicMs();
  }

  get loads(): ReadonlyMap<ShardId, ShardLoad> {
    return this.#loads.all;
  }

  get hot(): HotShard | undefined {
    return this.#hot;
  }

  async run(): Promise<void> {
    const { clock, log } = this.#ports;
    const { signal } = this.#ending;
    while (!signal.aborted) {
      await clock.sleep(everyMs, signal).catch(() => {});
      if (!signal.aborted) await this.look().catch((error: unknown) => log(`look at hot shards: ${String(error)}`));
    }
  }

  async look(): Promise<void> {
    const { clock, shards, busy } = this.#ports;
    const nowMono = clock.monotonicMs();
    this.#loads.sample(shards(), nowMono - this.#lookedMono, busy());
    this.#lookedMono = nowMono;
    this.#hot = this.#loads.hottest(hotShare);
    await this.#judge();
    await this.#ports.looked?.();
  }

  async #judge(): Promise<void> {
    const { node, isolation, isolateAt, log } = this.#ports;
    for (const [shard, { by, node: home }] of isolation.all) {
      if (by !== "rule" || home !== node) continue;
      const isCool = (this.#loads.all.get(shard)?.loopShare ?? 0) < (isolateAt ?? Number.POSITIVE_INFINITY) / 2;
      const looks = isCool ? (this.#coolLooks.get(shard) ?? 0) + 1 : 0;
      this.#coolLooks.set(shard, looks);
      if (looks < coolLooks) continue;
      this.#coolLooks.delete(shard);
      log(`shard ${shard} is no longer hot: this node takes other shards again`);
      await isolation.release(shard);
    }
    const hottest = isolateAt === undefined ? undefined : this.#loads.hottest(isolateAt);
    if (!hottest || isolation.all.has(hottest.shard)) return void (this.#candidate = undefined);
    const { shard, loopShare } = hottest;
    const looks = this.#candidate?.shard === shard ? this.#candidate.looks + 1 : 1;
    this.#candidate = { shard, looks };
    // A shard that is alone already has nothing to be isolated from.
    if (looks < hotLooks || this.#loads.all.size < 2) return;
    this.#candidate = undefined;
    log(`shard ${shard} is hot (${Math.round(loopShare * 100)} % of this node's time): its other shards move away`);
    await isolation.isolate(shard, { node, by: "rule" });
  }

  [Symbol.dispose](): void {
    this.#ending.abort();
  }
}
