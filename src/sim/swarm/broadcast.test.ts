/** Small broadcasts with the product's own machines; the large ones are `npm run swarm:sim`. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { Region, type RegionPlan } from "./region.ts";
import { simulateBroadcast } from "./broadcast.ts";

const plan: RegionPlan = {
  seed: "test",
  machines: 120,
  rackSize: 20,
  sizeBytes: 2 ** 30,
  unitBytes: 4 * 2 ** 20,
  rate: 125e6,
  originRate: 500e6,
  wanRate: 500e6,
  slowShare: 0.03,
  slowTimes: 10,
  crashShare: 0.05,
  downMs: 2_000,
  detectMs: 1_000,
  liarShare: 0.04,
  untilMs: 300_000,
};

describe("a simulated broadcast", () => {
  test("reaches all machines with slow ones, crashes and liars among them, and bans only liars", () => {
    const result = new Region(plan).run();
    equal(result.doneMs.filter((ms, i) => ms === Infinity && result.kinds[i] !== "liar").length, 0);
    ok(result.wrongUnits > 0 && result.banned > 0, "liars were there, and found out");
  });

  test("is the same again with the same seed", () => {
    deepEqual(new Region(plan).run(), new Region(plan).run());
  });

  test("a region that was cut off ends after it is back", () => {
    const cut = { fromMs: 1_000, toMs: 20_000 };
    const { doneMs, kinds } = new Region({ ...plan, cut, slowShare: 0, crashShare: 0 }).run();
    ok(doneMs.every((ms, i) => ms > cut.toMs && (ms < Infinity || kinds[i] === "liar")));
  });

  test("is never faster than the bound, and near it when nothing goes wrong", () => {
    const asked = { machines: 200, sizeBytes: 2 ** 30, unitBytes: 2 ** 21, seed: "1", isCalm: true };
    const { isFasterThanBound, efficiency, messagesPerMachine } = simulateBroadcast(asked);
    ok(!isFasterThanBound);
    ok(efficiency > 0.8 && efficiency <= 1, String(efficiency));
    ok(messagesPerMachine <= 8, String(messagesPerMachine));
  });
});
