import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import { Fault } from "#base/fault.ts";
import { batch, faults, only } from "./testing/support.ts";
import { grouped, type Append } from "./grouped.ts";

/** An append that waits until the test releases it, and records its arguments. */
function held(judge: Append): { append: Append; groups: number[][]; letGo: () => void } {
  const groups: number[][] = [];
  let letGo = (): void => undefined;
  const append: Append = async (batches) => {
    groups.push(batches.map(({ shard }) => shard));
    await new Promise<void>((resolve) => void (letGo = resolve));
    return await judge(batches);
  };
  return { append, groups, letGo: () => letGo() };
}

const accept: Append = async (batches) => ({ outcomes: batches.map(() => "appended"), storeNowMs: 1 });
const settle = async (): Promise<void> => {
  for (let i = 0; i < 20; i += 1) await Promise.resolve();
};

test("appends that arrive during another one go together, one batch per shard, in order", async () => {
  const { append, groups, letGo } = held(accept);
  const together = grouped(append);
  const results = [1, 2, 3, 2].map((shard, i) => together([batch(shard, 1, i + 1)]));
  for (let i = 0; i < 3; i += 1) {
    await settle();
    letGo();
  }
  deepEqual((await Promise.all(results)).map(only), Array(4).fill("appended"));
  deepEqual(groups, [[1], [2, 3], [2]]);
});

test("an invalid call fails alone", async () => {
  const refusing: Append = async (batches) => {
    if (batches.some(({ shard }) => shard === 3)) throw new Fault("invalid", "append", {});
    return await accept(batches);
  };
  const together = grouped(refusing);
  const [first, good, bad] = [1, 2, 3].map((shard) => together([batch(shard, 1, 1)]));
  equal(only(await (first ?? together([]))), "appended");
  equal(only(await (good ?? together([]))), "appended");
  await faults(bad ?? together([]), "invalid");
});

test("when the store fails, every caller in the group gets the failure", async () => {
  const failing: Append = async () => {
    throw new Fault("unknown-outcome", "append", {});
  };
  const together = grouped(failing);
  const calls = [1, 2, 3].map((shard) => together([batch(shard, 1, 1)]));
  for (const call of calls) await faults(call, "unknown-outcome");
  await faults(together([batch(1, 1, 1), batch(1, 1, 2)]), "invalid");
});
