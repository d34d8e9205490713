import { deepEqual, equal, rejects } from "node:assert/strict";
import { describe, test } from "node:test";
import { z } from "zod";
import { ManualClock, settle } from "#base/testing/manual-clock.ts";
import { memoryRecords } from "./memory.ts";
import type { RecordStore } from "./records.ts";
import { recordsOf } from "./typed.ts";
import { watchedRecords, type Records, type Watched } from "./watch.ts";

const id = (name: string, tenant = "acme") => ({ tenant, kind: "test", name });

/** Keeps what a watcher was told, as a reader would. */
function follow(records: Records, tenant?: string) {
  const ended = new AbortController();
  const known = new Map<string, string>();
  const told: Watched[] = [];
  const done = (async () => {
    for await (const news of records.watch({ kind: "test", tenant }, ended.signal)) {
      told.push(news);
      if (news.isReset) for (const key of known.keys()) if (key.startsWith(`${news.tenant}/`)) known.delete(key);
      for (const { name, document } of news.changed) known.set(`${news.tenant}/${name}`, document);
      for (const name of news.removed) known.delete(`${news.tenant}/${name}`);
    }
  })();
  return { known, told, stop: () => (ended.abort(), done) };
}

describe("a watcher of records", () => {
  test("gets all that is there, changes of this node at once, and changes of others when it looks", async () => {
    const clock = new ManualClock();
    const store = memoryRecords(() => clock.wallMs());
    const records = watchedRecords(store, clock);
    await records.create(id("a"), "1");
    await records.create(id("b", "globex"), "1");
    const all = follow(records);
    const own = follow(records, "acme");
    await settle();
    deepEqual(
      [...all.known],
      [
        ["acme/a", "1"],
        ["globex/b", "1"],
      ],
    );
    deepEqual([...own.known], [["acme/a", "1"]]);
    const { record } = await records.create(id("c"), "2");
    await settle();
    equal(own.known.get("acme/c"), "2");
    await records.remove(id("c"), record.version);
    await settle();
    equal(own.known.has("acme/c"), false);
    await store.create(id("d"), "elsewhere");
    await settle();
    equal(all.known.has("acme/d"), false, "another node's change is not seen at once");
    await clock.advance(1_000);
    await settle();
    equal(all.known.get("acme/d"), "elsewhere");
    equal(own.known.get("acme/d"), "elsewhere");
    await all.stop();
    await own.stop();
  });

  test("that was away for too long reads everything again", async () => {
    const clock = new ManualClock();
    const store = memoryRecords(() => clock.wallMs());
    const records = watchedRecords(store, clock);
    await store.create(id("stays"), "1");
    const gone = await store.create(id("goes"), "1");
    const watcher = follow(records);
    await settle();
    equal(watcher.known.size, 2);
    await store.remove(id("goes"), gone.record.version);
    for (let n = 0; n < 600; n += 1) {
      const { record } = await store.create(id("again"), "x");
      await store.remove(id("again"), record.version);
    }
    await clock.advance(1_000);
    await settle();
    deepEqual([...watcher.known.keys()], ["acme/stays"]);
    equal(watcher.told.filter(({ isReset }) => isReset).length, 2);
    await watcher.stop();
  });

  test("of many records gets them in pages", async () => {
    const clock = new ManualClock();
    const records = watchedRecords(
      memoryRecords(() => 1),
      clock,
    );
    for (let n = 0; n < 2_500; n += 1) await records.create(id(`r${n}`), "x");
    const watcher = follow(records);
    await settle();
    deepEqual([watcher.known.size, watcher.told.length], [2_500, 3]);
    await watcher.stop();
  });
});

describe("records of one type", () => {
  const Counter = z.object({ count: z.int(), note: z.string().default("") });
  const typed = (store: RecordStore = memoryRecords(() => 1)) => {
    const records = watchedRecords(store, new ManualClock());
    return { records, counters: recordsOf(records, { kind: "test", schema: Counter }) };
  };

  test("are created, changed, listed and removed as values", async () => {
    const { counters } = typed();
    const made = await counters.create("acme", "a", { count: 1 });
    deepEqual([made.created, made.record.value], [true, { count: 1, note: "" }]);
    deepEqual((await counters.create("acme", "a", { count: 9 })).record.value.count, 1);
    await Promise.all([1, 2, 3].map(() => counters.update("acme", "a", ({ count }) => ({ count: count + 1 }))));
    equal((await counters.read("acme", "a"))?.value.count, 4);
    equal(await counters.update("acme", "none", (value) => value), undefined);
    deepEqual(
      (await counters.list({ tenant: "acme", limit: 10 })).records.map(({ name, value }) => [name, value.count]),
      [["a", 4]],
    );
    equal(await counters.remove("acme", "a", 1), false);
    equal(await counters.remove("acme", "a"), true);
    equal(await counters.remove("acme", "a"), false);
  });

  test("that are not of their type are a fault", async () => {
    const { records, counters } = typed();
    await records.create(id("a"), "no JSON");
    await rejects(counters.read("acme", "a"), /corrupt.*not of its kind/);
  });
});
