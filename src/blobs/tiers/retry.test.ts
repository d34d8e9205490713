import { equal, rejects } from "node:assert/strict";
import { test } from "node:test";
import { Fault, isFault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { Random } from "#base/random.ts";
import { retrying } from "./retry.ts";

const silent = (): Fault => new Fault("unavailable", "ask", { why: "silent" });

test("retries end after the time limit, although attempts are left", async () => {
  const clock = new ManualClock();
  const policy = { attemptsMax: 4, delayMs: 0, delayMsMax: 0, withinMs: 500 };
  let asked = 0;
  const slow = async (): Promise<never> => {
    asked += 1;
    await clock.advance(600);
    throw silent();
  };
  await rejects(retrying({ clock, random: new Random(1), policy }, slow), (e) => isFault(e, "unavailable"));
  equal(asked, 1);
});
