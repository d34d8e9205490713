/** Everything that callers can create many of is bounded, or is dropped when space is short. */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { isFault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { digestOf } from "#blobs/hashing.ts";
import { diskRig } from "./testing/disk.ts";

test("the number of blobs and names is limited, because the table is in memory; the oldest are evicted", async () => {
  const clock = new ManualClock(10_000_000);
  const rig = await diskRig({ clock, entriesMax: 500, promisedMs: 60_000 });
  try {
    const { blobs } = rig.store.forTenant("mill");
    const { index, upkeep } = rig.store;
    const put = async (i: number): Promise<string> => {
      const bytes = Buffer.from(`tiny ${i}`);
      await blobs.write(digestOf(bytes), bytes);
      return digestOf(bytes);
    };
    const name = (i: number) =>
      index.put(
        { tenant: "mill", space: "ac", name: `n${i}` },
        { digest: digestOf(Buffer.from("x")), principal: "p", atMs: 1 },
      );
    for (let i = 0; i < 250; i += 1) {
      await Promise.all([put(i), name(i)]);
      if (i % 25 === 0) await clock.advance(1_000); // with different ages
    }
    const full = (e: unknown): boolean => isFault(e, "exhausted") && e.facts["entriesMax"] === 500;
    await rejects(put(1_000), full);
    await rejects(name(1_000), full);
    const large = Buffer.alloc(300_000, "large");
    await rejects(blobs.write(digestOf(large), large), full);
    await clock.advance(300_000);
    const used = await put(3);
    const young = [];
    for (let i = 2_000; i < 2_100; i += 1) young.push(await put(i));
    const { blobs: count, entries } = await upkeep.stat();
    ok(count + entries <= 500 && count + entries >= 400, `${count} and ${entries}`);
    deepEqual(await blobs.missing([used, ...young]), []);
  } finally {
    await rig.dispose();
  }
});

test("removed streams leave no folders behind, and reading a missing one creates none", async () => {
  const rig = await diskRig();
  try {
    const { streams } = rig.store;
    const keyOf = (task: number, name = "stdout") => ({ tenant: "mill", task: `t${task}`, token: 1, name });
    const folders = (): number =>
      readdirSync(join(rig.root, "streams")).flatMap((prefix) => readdirSync(join(rig.root, "streams", prefix))).length;
    for (let task = 0; task < 5; task += 1)
      for (const name of ["stdout", "stderr"]) await streams.append(keyOf(task, name), 0, Buffer.from("said"));
    equal(folders(), 5);
    for await (const _ of streams.read(keyOf(9), 0, AbortSignal.abort()));
    for (let task = 0; task < 5; task += 1) await streams.remove(keyOf(task, "stdout"));
    equal(folders(), 5, "there is another stream in each");
    for (let task = 0; task < 5; task += 1) await streams.remove(keyOf(task, "stderr"));
    equal(folders(), 0);
    await streams.append(keyOf(0), 0, Buffer.from("again"));
    deepEqual(await streams.state(keyOf(0)), { sizeBytes: 5 });
  } finally {
    await rig.dispose();
  }
});

test("a reader of a stream sees new bytes although ten thousand other streams were used meanwhile", async () => {
  const rig = await diskRig();
  try {
    const { streams } = rig.store;
    const key = { tenant: "mill", task: "read", token: 1, name: "stdout" };
    const enough = new AbortController();
    let text = "";
    const reading = (async () => {
      for await (const piece of streams.read(key, 0, enough.signal)) {
        text += Buffer.from(piece).toString();
        if (text === "hello") return;
      }
    })();
    const asked = Array.from({ length: 10_100 }, (_, i) => streams.state({ ...key, task: `other ${i}` }));
    await Promise.all(asked);
    await streams.append(key, 0, Buffer.from("hello"));
    await reading;
    equal(text, "hello");
    enough.abort();
  } finally {
    await rig.dispose();
  }
});
