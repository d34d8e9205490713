/**
 * How much of the node's time each of its shards takes. A shard's part is estimated by its part of the commands and
 * events of all shards here: to measure each command would cost more than most of them.
 */
import type { ShardId } from "#base/ids.ts";

/** A shard as its host counts. */
export type CountedShard = { readonly shard: ShardId; readonly commands: number; readonly logged: number };

export type ShardLoad = {
  readonly commandsPerS: number;
  readonly eventsPerS: number;
  /** From 0 to 1: the part of the event loop's time. */
  readonly loopShare: number;
};

type Counts = { readonly of: CountedShard; readonly commands: number; readonly logged: number };

export class ShardLoads {
  #before = new Map<ShardId, Counts>();
  #loads: ReadonlyMap<ShardId, ShardLoad> = new Map();

  get all(): ReadonlyMap<ShardId, ShardLoad> {
    return this.#loads;
  }

  /** `busy`: the part of the last `passedMs` in which the event loop ran something. */
  sample(shards: Iterable<CountedShard>, passedMs: number, busy: number): void {
    const counts = new Map<ShardId, Counts>();
    const news: { readonly shard: ShardId; readonly commands: number; readonly logged: number }[] = [];
    for (const one of shards) {
      const { shard, commands, logged } = one;
      const known = this.#before.get(shard);
      // A shard that was handed away and came back counts from 0 again.
      const before = known?.of === one ? known : { commands: 0, logged: 0 };
      news.push({ shard, commands: commands - before.commands, logged: logged - before.logged });
      counts.set(shard, { of: one, commands, logged });
    }
    const total = news.reduce((sum, { commands, logged }) => sum + commands + logged, 0);
    const seconds = Math.max(1, passedMs) / 1_000;
    this.#before = counts;
    this.#loads = new Map(
      news.map(({ shard, commands, logged }) => [
        shard,
        {
          commandsPerS: commands / seconds,
          eventsPerS: logged / seconds,
          loopShare: total === 0 ? 0 : (busy * (commands + logged)) / total,
        },
      ]),
    );
  }

  /** The busiest shard that takes at least this share. */
  hottest(atLeast: number): ({ readonly shard: ShardId } & ShardLoad) | undefined {
    let hottest: ({ readonly shard: ShardId } & ShardLoad) | undefined;
    for (const [shard, load] of this.#loads)
      if (load.loopShare >= atLeast && load.loopShare > (hottest?.loopShare ?? 0)) hottest = { shard, ...load };
    return hottest;
  }
}
