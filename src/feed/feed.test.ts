import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { describe, test } from "node:test";
import { must } from "#base/assert.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { FeedItem } from "#kernel/read/feed.ts";
import { keptStates } from "#shard/history/kept-states.ts";
import { FeedRig, workOff } from "./testing/feed-rig.ts";

const { signal } = new AbortController();
const ids = (items: readonly FeedItem[]): readonly string[] => items.map(({ id }) => id);
const says = ({ kind, change, phase, step }: FeedItem): string =>
  `${kind} ${change} ${phase}${step ? ` ${step.name}` : ""}`;

/** A store that has lost some blobs. */
const readWithout =
  (blobs: BlobStore, lost: ReadonlySet<string>): BlobStore["read"] =>
  (digest, ...rest) => {
    if (lost.has(digest)) throw new Fault("not-found", "read blob", { digest });
    return blobs.read(digest, ...rest);
  };

async function alone() {
  const rig = new FeedRig();
  const a = await rig.fed("a");
  await a.serving();
  return { rig, a };
}

describe("the event feed", () => {
  test("has every transition of a job, in order", async () => {
    const { rig, a } = await alone();
    using reader = await a.feed.open({}, "now");
    await workOff(a, { name: "grüße", tags: [{ name: "ref", value: "main" }] });
    const items = await rig.drain(reader);
    deepEqual(items.map(says), [
      "job submitted RUNNING",
      "stage ready RUNNING",
      "task ready READY",
      "task ready READY",
      "task started RUNNING",
      "task started RUNNING",
      "step reported started one",
      "task committed SUCCEEDED",
      "task committed SUCCEEDED",
      "stage ended COMPLETED",
      "job ended SUCCEEDED",
    ]);
    const [first] = items;
    const { tenant, job, door, name, tags } = must(first, "item");
    deepEqual(
      { tenant, job, door, name, tags },
      { tenant: "t", job: "j0-1", door: "shell", name: "grüße", tags: { ref: "main" } },
    );
    equal(new Set(ids(items)).size, items.length);
  });

  test("is the same when it is read again from the archive and the log", async () => {
    const { rig, a } = await alone();
    using live = await a.feed.open({}, "oldest");
    const seen: FeedItem[] = [];
    for (let i = 0; i < 8; i += 1) {
      await workOff(a, { name: `job ${i}` });
      await rig.clock.advance(1_000);
      seen.push(...(await rig.drain(live)));
    }
    ok((await rig.store.connect().segments(0)).length > 2);
    using again = await a.feed.open({}, "oldest");
    deepEqual(await rig.drain(again), seen);
    equal(seen.filter((item) => says(item) === "job ended SUCCEEDED").length, 8);
    deepEqual(rig.reports, []);
  });

  test("is replayed from a state that was kept beside the archive, not from the first batch", async () => {
    const { rig, a } = await alone();
    using early = await a.feed.open({}, "oldest");
    const seen: FeedItem[] = [];
    let cursor = "";
    for (let i = 0; i < 30; i += 1) {
      await workOff(a, { name: `job ${i}` });
      await rig.clock.advance(1_000);
      seen.push(...(await rig.drain(early)));
      if (i === 20) ({ cursor } = early);
    }
    const kept = await keptStates(rig.store.connect(), 0);
    ok(kept.length >= 3, `${kept.length} states are kept`);
    const after = seen.findIndex(({ name }) => name === "job 21");
    const replay = async (id: string) => {
      const b = await rig.fed(id);
      using reader = await rig.through(b.feed.open({}, { cursor }));
      deepEqual(await rig.drain(reader), seen.slice(after));
      return b.feed.status().replayedBatches;
    };
    const { seq: tail } = await rig.store.connect().tail(0);
    const cost = await replay("b");
    ok(cost < tail / 2, `${cost} of ${tail} batches were applied`);
    equal(rig.reports.length, 0, rig.reports.join());
    // Without the bytes of those states everything is read again, and the items are the same.
    Object.assign(rig.blobs, { read: readWithout({ ...rig.blobs }, new Set(kept.map(({ digest }) => digest))) });
    ok((await replay("c")) > cost);
    ok(rig.reports.length > 0 && rig.reports.every((line) => line.includes("read the state of shard 0")));
  });

  test("continues at its cursor, also in the middle of a batch, without a gap and in order", async () => {
    const { rig, a } = await alone();
    const all: FeedItem[] = [];
    using whole = await a.feed.open({}, "oldest");
    for (let i = 0; i < 3; i += 1) await workOff(a);
    const truth = await rig.drain(whole);
    for (let cursor: string | undefined; ;) {
      using reader = await rig.through(a.feed.open({}, cursor === undefined ? "oldest" : { cursor }));
      const items = await rig.through(reader.take(1, signal));
      if (items.length === 0) break;
      all.push(...items);
      ({ cursor } = reader);
    }
    deepEqual(ids(all), ids(truth));
  });

  test("has no gap when the owner dies, for readers on any node", async () => {
    const rig = new FeedRig();
    const a = await (await rig.fed("a")).serving();
    await workOff(a);
    const b = await rig.fed("b");
    await rig.clock.advance(3_000);
    using there = await rig.through(b.feed.open({}, "oldest"));
    using live = await rig.through(b.feed.open({}, "now"));
    const seen = await rig.drain(there);
    await workOff(a);
    rig.kill(a, "a"); // what it did last has perhaps not been heard of
    await b.serving();
    await workOff(b);
    seen.push(...(await rig.drain(there)));
    const sinceNow = await rig.drain(live);
    using again = await b.feed.open({}, "oldest");
    const truth = ids(await rig.drain(again));
    deepEqual(ids(seen), truth);
    deepEqual(ids(sinceNow), truth.slice(-sinceNow.length));
    equal(sinceNow.filter(({ change }) => change === "submitted").length, 2);
  });

  test("shows a tenant only its own, and what the filter wants", async () => {
    const { rig, a } = await alone();
    await workOff(a, { tenant: "t", door: "ci", tags: [{ name: "repo", value: "x" }] });
    await workOff(a, { tenant: "u", door: "shell" });
    const read = async (filter: Parameters<typeof a.feed.open>[0]): Promise<readonly FeedItem[]> => {
      using reader = await rig.through(a.feed.open(filter, "oldest"));
      return await rig.drain(reader);
    };
    equal((await read({})).length, 22);
    deepEqual(new Set((await read({ tenant: "u" })).map(({ tenant }) => tenant)), new Set(["u"]));
    equal((await read({ tenant: "u", doors: ["ci"] })).length, 0);
    equal((await read({ tags: [{ name: "repo", value: "x" }] })).length, 11);
    deepEqual((await read({ kinds: ["job"], job: "j0-2" })).map(says), [
      "job submitted RUNNING",
      "job ended SUCCEEDED",
    ]);
  });

  test("says how far readers are behind, and for how long an owner has been silent", async () => {
    const rig = new FeedRig();
    const a = await (await rig.fed("a")).serving();
    const b = await rig.fed("b");
    await rig.clock.advance(3_000);
    using reader = await rig.through(b.feed.open({}, "now"));
    await rig.drain(reader);
    await workOff(a);
    await rig.clock.advance(4_000);
    const behind = b.feed.status();
    ok(behind.lagBatches > 0 && behind.lagMs >= 4_000 && behind.lagMs < 10_000, JSON.stringify(behind));
    equal(behind.silentMs, 0);
    await rig.drain(reader);
    await rig.clock.advance(20_000); // long questions without an answer are no silence
    const { lagBatches, lagMs, silentMs } = b.feed.status();
    deepEqual({ lagBatches, lagMs, silentMs }, { lagBatches: 0, lagMs: 0, silentMs: 0 });
    rig.desks.delete("mem://a"); // it owns its shard, and cannot be asked
    await rig.clock.advance(15_000);
    ok(b.feed.status().silentMs >= 9_000);
    rig.desks.set("mem://a", a.desk);
    await rig.clock.advance(6_000);
    equal(b.feed.status().silentMs, 0);
  });

  test("sends a reader away that is too slow; its cursor leads on without a gap", async () => {
    const rig = new FeedRig();
    const a = await rig.fed("a", { feed: { hub: { bytesMax: 1 } } }); // the smallest ring: about 100 items
    await a.serving();
    using slow = await a.feed.open({}, "now");
    equal((await rig.through(slow.take(10, signal))).length, 0);
    for (let i = 0; i < 20; i += 1) await workOff(a);
    await rig.clock.advance(1_000);
    await rejects(slow.take(10, signal), (error) => isFault(error, "exhausted"));
    using resumed = await rig.through(a.feed.open({}, { cursor: slow.cursor }));
    equal((await rig.drain(resumed)).length, 20 * 11);
  });

  test("reads a batch from the log that is too large for a message between nodes", async () => {
    const rig = new FeedRig();
    const a = await (await rig.fed("a", { desk: { answerBytesMax: 3_000 } })).serving();
    const b = await rig.fed("b");
    await rig.clock.advance(3_000);
    using far = await rig.through(b.feed.open({}, "now"));
    equal((await rig.drain(far)).length, 0);
    for (let i = 0; i < 3; i += 1) await workOff(a, { name: `job ${i}` });
    await workOff(a, { name: "x".repeat(200), tasks: 50 });
    const seen = await rig.drain(far);
    using whole = await a.feed.open({}, "oldest");
    deepEqual(ids(seen), ids(await rig.drain(whole)));
    ok(b.feed.status().replays > 0);
    deepEqual(rig.reports, []);
  });

  test("goes on with the log where an owner answers nothing but errors", async () => {
    const rig = new FeedRig();
    const a = await (await rig.fed("a")).serving();
    const b = await rig.fed("b");
    await rig.clock.advance(3_000);
    using far = await rig.through(b.feed.open({}, "now"));
    equal((await rig.drain(far)).length, 0);
    Object.assign(a.desk, { ask: () => Promise.reject(new Fault("exhausted", "answer", { why: "too long" })) });
    await workOff(a);
    equal((await rig.drain(far)).length, 11);
  });

  test("gives each tenant its share of readers", async () => {
    const rig = new FeedRig();
    const a = await rig.fed("a", { feed: { readersMax: 5 } });
    await a.serving();
    for (let i = 0; i < 3; i += 1) await a.feed.open({ tenant: "t" }, "now");
    await rejects(a.feed.open({ tenant: "t" }, "now"), (error) => isFault(error, "exhausted"));
    await a.feed.open({ tenant: "u" }, "now");
  });

  test("refuses cursors that are none, of another cluster, or ahead of the log", async () => {
    const { rig, a } = await alone();
    using reader = await a.feed.open({}, "now");
    const other = new FeedRig();
    const b = await other.fed("b", { cluster: { shards: 1, clusterId: "elsewhere" } });
    await b.serving();
    const open = (cursor: string) => rig.through(b.feed.open({}, { cursor }));
    await rejects(open(reader.cursor), (error) => isFault(error, "invalid"));
    await rejects(open("AQ"), (error) => isFault(error, "invalid"));
    await rejects(open("no cursor"), (error) => isFault(error, "invalid"));
    for (let i = 0; i < 3; i += 1) await workOff(a);
    await rig.drain(reader);
    const fresh = new FeedRig();
    const c = await fresh.fed("c");
    await c.serving();
    await rejects(fresh.through(c.feed.open({}, { cursor: reader.cursor })), (error) => isFault(error, "stale"));
  });

  test("collects nothing while there is no reader", async () => {
    const rig = new FeedRig();
    const a = await rig.fed("a", { desk: { lingerMs: 500 }, feed: { hub: { lingerMs: 500 } } });
    await a.serving();
    await workOff(a);
    equal(must(a.node.host.shards.get(0), "shard").isFed, false);
    const reader = await a.feed.open({}, "now");
    await rig.drain(reader);
    equal(must(a.node.host.shards.get(0), "shard").isFed, true);
    reader[Symbol.dispose]();
    await rig.clock.advance(8_000);
    await workOff(a);
    await rig.clock.advance(100);
    equal(must(a.node.host.shards.get(0), "shard").isFed, false);
  });
});
