import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import type { Granted } from "#shard/client/executor.ts";
import { Holding } from "#worker/holding.ts";
import { Spares } from "./spares.ts";

function rig(countMax = 2, aheadMax = 0) {
  const clock = new ManualClock();
  const back: string[] = [];
  const spares = new Spares({
    clock,
    slots: 2,
    countMin: countMax,
    aheadMax,
    giveBack: ({ granted }) => back.push(granted.taskId),
  });
  const holding = (taskId: string): Holding =>
    new Holding(
      { taskId, token: 1, leaseMs: 60_000, graceMs: 0, effects: "none" } as unknown as Granted,
      "w",
      clock,
      0,
    );
  return { clock, back, spares, holding };
}

test("the claim that came first gets the next slot", async () => {
  const { spares, holding, back, clock } = rig();
  for (const taskId of ["t1", "t2"]) equal(spares.keep(holding(taskId)), true);
  deepEqual(
    [spares.take(), spares.take(), spares.take()].map((one) => one?.granted.taskId),
    ["t1", "t2", undefined],
  );
  await clock.advance(10_000);
  deepEqual(back, [], "a claim that got a slot is not released");
});

test("no more claims wait than allowed", () => {
  const { spares, holding } = rig(1);
  deepEqual([spares.keep(holding("t1")), spares.keep(holding("t2"))], [true, false]);
});

test("if attempts are long, the claim is released soon", async () => {
  const { spares, holding, back, clock } = rig();
  for (let attempt = 0; attempt < 100; attempt += 1) spares.learn(60_000);
  spares.keep(holding("t1"));
  await clock.advance(249);
  deepEqual(back, []);
  await clock.advance(1);
  deepEqual(back, ["t1"]);
});

test("if attempts are short, the claim is released once a slot is late", async () => {
  const { spares, holding, back, clock } = rig();
  for (let attempt = 0; attempt < 100; attempt += 1) spares.learn(10);
  spares.keep(holding("t1"));
  await clock.advance(59);
  deepEqual(back, []);
  await clock.advance(1);
  deepEqual(back, ["t1"]);
  equal(spares.wanted, 0, "until an attempt has ended, nothing is known of how long they take");
});

test("a worker that takes no more work releases all of them", () => {
  const { spares, holding, back } = rig();
  spares.keep(holding("t1"));
  spares.keep(holding("t2"));
  spares.giveAllBack();
  deepEqual(back, ["t1", "t2"]);
  equal(spares.take(), undefined);
});

test("claims are taken ahead only while attempts are short, and in large steps", () => {
  const { spares, holding } = rig(2, 64);
  equal(spares.wanted, 0, "nothing is known of attempts yet");
  spares.learn(1);
  equal(spares.wanted, 40, "what two slots do in 20 ms");
  for (let at = 0; at < 21; at += 1) spares.keep(holding(`t${at}`));
  equal(spares.wanted, 0, "more than half of them are there");
  spares.take();
  equal(spares.wanted, 20);
  for (let attempt = 0; attempt < 100; attempt += 1) spares.learn(0.01);
  equal(spares.wanted, 44, "at most 64");
  for (let attempt = 0; attempt < 100; attempt += 1) spares.learn(50);
  equal(spares.wanted, 0);
});
