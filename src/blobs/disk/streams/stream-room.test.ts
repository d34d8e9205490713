/** Streams count against the store's limit, also those of an earlier process. */
import { equal, ok, rejects } from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isFault } from "#base/fault.ts";
import { until } from "#testing/until.ts";
import { StreamCounts } from "./stream-counts.ts";
import { diskRig } from "#blobs/disk/testing/disk.ts";

const MiB = 1024 * 1024;
const keyOf = (task: number) => ({ tenant: "mill", task: `task ${task}`, token: 1, name: "stdout" });

test("streams of an earlier process count against the limit after a restart, and are released once", async () => {
  const rig = await diskRig({ sizeBytesMax: 64 * MiB });
  const used = async (): Promise<number> => (await rig.store.upkeep.stat()).usedBytes;
  try {
    const emptyBytes = await used();
    for (let task = 0; task < 20; task += 1) await rig.store.streams.append(keyOf(task), 0, Buffer.alloc(MiB, "x"));
    equal((await used()) - emptyBytes, 20 * MiB);
    await rig.reopen();
    // Some are used while they are being counted.
    await rig.store.streams.append(keyOf(3), MiB, Buffer.alloc(MiB, "y"));
    await rig.store.streams.remove(keyOf(4));
    await until("all are counted", async () => (await used()) - emptyBytes >= 20 * MiB);
    equal((await used()) - emptyBytes, 20 * MiB);
    await rejects(
      rig.store.streams.append(keyOf(100), 0, Buffer.alloc(50 * MiB)),
      (error) => isFault(error, "exhausted"),
      "no space is given beyond the limit",
    );
    for (let task = 0; task < 20; task += 1) await rig.store.streams.remove(keyOf(task));
    equal(await used(), emptyBytes);
  } finally {
    await rig.dispose();
  }
});

test("each task is counted once, by the walk or by its first user", () => {
  const hash = fc.stringMatching(/^[0-9a-c]{2}[0-9]$/);
  fc.assert(
    fc.property(fc.uniqueArray(hash), fc.array(fc.tuple(fc.nat(30), hash)), (left, used) => {
      const counts = new StreamCounts();
      const counted: string[] = [];
      const use = (one: string): unknown => counts.begin(one) && counted.push(one);
      const prefixes = [...new Set(left.map((one) => one.slice(0, 2)))].toSorted();
      for (const [step, prefix] of prefixes.entries()) {
        for (const [at, one] of used) if (at === step) use(one);
        for (const one of left) if (one.startsWith(prefix)) use(one);
        counts.passed(prefix);
      }
      counts.end();
      for (const [, one] of used) use(one);
      equal(new Set(counted).size, counted.length, "never twice");
      ok(left.every((one) => counted.includes(one)));
    }),
  );
});
