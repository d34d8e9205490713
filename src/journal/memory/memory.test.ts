import { equal } from "node:assert/strict";
import { test } from "node:test";
import { exerciseJournal } from "#journal/testing/exercise.ts";
import { memoryStore } from "./memory.ts";

exerciseJournal("in memory", async () => {
  let nowMs = 1_700_000_000_000;
  const store = memoryStore(() => nowMs);
  const { tamper } = store;
  return {
    connect: async () => store.connect(),
    advance: (ms) => void (nowMs += ms),
    tamper: {
      flipRecord: async (shard, seq, bit) => tamper.flipRecord(shard, seq, bit),
      dropRecord: async (shard, seq) => tamper.dropRecord(shard, seq),
      flipChunk: async (shard, index, bit) => tamper.flipChunk(shard, index, bit),
    },
    destroy: async () => undefined,
  };
});

test("a memory journal needs no timers: everything is done after the microtasks", async () => {
  const journal = memoryStore(() => 1).connect();
  await journal.open({ shards: 1, clusterId: "sim" });
  let done = false;
  void journal.acquire(0, "ada", { leaseMs: 10, features: 1 }).then(() => void (done = true));
  for (let i = 0; i < 10; i += 1) await Promise.resolve();
  equal(done, true);
});
