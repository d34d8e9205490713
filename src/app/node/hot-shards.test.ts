import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { memoryRecords } from "#records/memory.ts";
import { watchedRecords } from "#records/watch.ts";
import { HotShards } from "./hot-shards.ts";
import { Isolation } from "./actions/isolation.ts";
import { ShardLoads } from "./shard-loads.ts";

const shardOf = (shard: number) => ({ shard, commands: 0, logged: 0 });

describe("hot shards", () => {
  test("a shard's share is its part of the node's commands and events, of the time that the loop was busy", () => {
    const loads = new ShardLoads();
    const [hot, calm] = [shardOf(3), shardOf(4)];
    Object.assign(hot, { commands: 600, logged: 1_200 });
    Object.assign(calm, { commands: 100, logged: 100 });
    loads.sample([hot, calm], 2_000, 0.5);
    deepEqual(loads.all.get(3), { commandsPerS: 300, eventsPerS: 600, loopShare: 0.45 });
    deepEqual(loads.hottest(0.3)?.shard, 3);
    equal(loads.hottest(0.5), undefined);
    loads.sample([hot, calm], 2_000, 0.5);
    deepEqual(loads.all.get(3), { commandsPerS: 0, eventsPerS: 0, loopShare: 0 });
    // It was away, and is counted from 0 on again.
    loads.sample([{ shard: 3, commands: 10, logged: 0 }], 1_000, 1);
    equal(loads.all.get(3)?.commandsPerS, 10);
  });

  test("by rule: isolated after half a minute, released after five minutes without much to do", async () => {
    const clock = new ManualClock();
    const records = watchedRecords(
      memoryRecords(() => clock.wallMs()),
      clock,
    );
    let moved = 0;
    let busy = 0.8;
    const isolation = new Isolation(records, () => (moved += 1));
    const [hot, calm] = [shardOf(3), shardOf(4)];
    const log: string[] = [];
    const shards = new HotShards({
      node: "a",
      clock,
      shards: () => [hot, calm],
      busy: () => busy,
      isolation,
      isolateAt: 0.5,
      log: (line) => log.push(line),
    });
    const look = async (times: number, commands: number) => {
      for (let i = 0; i < times; i += 1) {
        hot.commands += commands;
        calm.commands += 10;
        await shards.look();
      }
    };
    await look(5, 1_000);
    deepEqual([shards.hot?.shard, isolation.homes.size], [3, 0]);
    await look(1, 1_000);
    deepEqual([[...isolation.homes], isolation.all.get(3)?.by], [[[3, "a"]], "rule"]);
    busy = 0.2;
    await look(59, 1);
    equal(isolation.homes.size, 1);
    await look(1, 1);
    equal(isolation.homes.size, 0);
    equal(log.length, 2);
    equal(moved, 2);
  });

  test("by hand: every node follows the records, and the last word counts", async () => {
    const clock = new ManualClock();
    const store = memoryRecords(() => clock.wallMs());
    const [here, there] = [0, 1].map(() => new Isolation(watchedRecords(store, clock), () => {}));
    void there?.follow(() => {});
    await here?.isolate(7, { node: "a", by: "hand" });
    await here?.isolate(7, { node: "b", by: "hand" });
    await clock.advance(10_000);
    deepEqual([...(there?.homes ?? [])], [[7, "b"]]);
    equal(await here?.release(7), true);
    equal(await here?.release(7), false);
    await clock.advance(10_000);
    equal(there?.homes.size, 0);
    there?.[Symbol.dispose]();
  });
});
