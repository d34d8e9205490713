import { equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "#base/random.ts";
import { limitsFor, sequential, type Sequential } from "./sequential.ts";

const limits = limitsFor(0.01);
const says = (healthy: number, failed: number): Sequential["says"] => sequential({ healthy, failed }, limits).says;

/** Machines report one after the other until it decides. */
function decide(rate: number, random: Random): { readonly says: string; readonly after: number } {
  let [healthy, failed] = [0, 0];
  for (let after = 1; after <= 5_000; after += 1) {
    if (random.chance(rate)) failed += 1;
    else healthy += 1;
    const decided = says(healthy, failed);
    if (decided !== "undecided") return { says: decided, after };
  }
  return { says: "undecided", after: 5_000 };
}

describe("the sequential test", () => {
  test("decides nothing on nothing, nor on one failure", () => {
    equal(says(0, 0), "undecided");
    equal(says(0, 1), "undecided");
  });
  test("three failures among the first few are too many", () => equal(says(2, 3), "bad"));
  test("many healthy machines are enough", () => equal(says(120, 0), "good"));
  test("is wrong about once in a hundred at most, though it is asked after every report", () => {
    const random = new Random(5);
    let [alarms, misses, reports] = [0, 0, 0];
    for (let run = 0; run < 500; run += 1) {
      if (decide(0.01, random).says === "bad") alarms += 1;
      const bad = decide(0.3, random);
      if (bad.says === "good") misses += 1;
      reports += bad.after;
    }
    ok(alarms <= 12, `${alarms} false alarms in 500`);
    ok(misses <= 12, `${misses} misses in 500`);
    ok(reports / 500 < 15, "a version that fails on a third of the machines is found within fifteen reports");
  });
});
