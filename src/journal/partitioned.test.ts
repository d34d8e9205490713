import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import { Fault } from "#base/fault.ts";
import { exerciseJournal } from "./testing/exercise.ts";
import { batch, faults, own } from "./testing/support.ts";
import type { Journal } from "./journal.ts";
import { memoryStore } from "./memory/memory.ts";
import { partitionedJournal } from "./partitioned.ts";

const databaseOf = (shard: number): number => (shard < 4 ? 0 : 1);

exerciseJournal("in two databases", async () => {
  let nowMs = 1_700_000_000_000;
  const stores = [memoryStore(() => nowMs), memoryStore(() => nowMs + 7)] as const;
  const tamperAt = (shard: number) => stores[databaseOf(shard) === 0 ? 0 : 1].tamper;
  return {
    connect: async () => partitionedJournal({ databases: [stores[0].connect(), stores[1].connect()], databaseOf }),
    advance: (ms) => void (nowMs += ms),
    tamper: {
      flipRecord: async (shard, seq, bit) => tamperAt(shard).flipRecord(shard, seq, bit),
      dropRecord: async (shard, seq) => tamperAt(shard).dropRecord(shard, seq),
      flipChunk: async (shard, index, bit) => tamperAt(shard).flipChunk(shard, index, bit),
    },
    destroy: async () => undefined,
  };
});

async function halfDown(): Promise<{ journal: Journal; fail: (code: "unavailable" | undefined) => void }> {
  let failing: "unavailable" | undefined;
  const [good, bad] = [memoryStore(() => 1000).connect(), memoryStore(() => 1000).connect()];
  const broken = async (): Promise<never> => {
    throw new Fault("unavailable", "reach database", {});
  };
  const flaky: Journal = {
    ...bad,
    append: (batches) => (failing ? broken() : bad.append(batches)),
    renew: (...args) => (failing ? broken() : bad.renew(...args)),
  };
  const journal = partitionedJournal({ databases: [good, flaky], databaseOf });
  await journal.open({ shards: 8, clusterId: "two" });
  return { journal, fail: (code) => void (failing = code) };
}

test("with one of two databases down an append to both has an unknown outcome, and the tails settle it", async () => {
  const { journal, fail } = await halfDown();
  const [one, five] = [await own(journal, 1), await own(journal, 5)];
  fail("unavailable");
  await faults(journal.append([batch(1, one, 1), batch(5, five, 1)]), "unknown-outcome");
  deepEqual([(await journal.tail(1)).seq, (await journal.tail(5)).seq], [1, 0]);
  await faults(journal.append([batch(5, five, 1)]), "unavailable");
  deepEqual((await journal.append([batch(1, one, 2)])).outcomes, ["appended"]);
});

test("with one of two databases down only its own leases are not renewed", async () => {
  const { journal, fail } = await halfDown();
  const [one, five] = [await own(journal, 1), await own(journal, 5)];
  const both = [
    { shard: 1, epoch: one },
    { shard: 5, epoch: five },
  ];
  fail("unavailable");
  deepEqual((await journal.renew("ada", both, 1000)).held, [1]);
  await faults(journal.renew("ada", both.slice(1), 1000), "unavailable");
  fail(undefined);
  deepEqual((await journal.renew("ada", both, 1000)).held, [1, 5]);
});

test("databases of different clusters are refused", async () => {
  const [left, right] = [memoryStore(() => 1).connect(), memoryStore(() => 1).connect()];
  await right.open({ shards: 8, clusterId: "other" });
  const journal = partitionedJournal({ databases: [left, right], databaseOf });
  await faults(journal.open({ shards: 8, clusterId: "one" }), "invalid");
  equal((await left.cluster()).clusterId, "one");
});
