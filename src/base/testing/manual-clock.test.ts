import { deepEqual, equal, rejects } from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "./manual-clock.ts";

test("timers run in the order of their times, then of their creation, and see their own time", async () => {
  const clock = new ManualClock(0);
  const seen: string[] = [];
  clock.after(20, () => seen.push(`b@${clock.monotonicMs()}`));
  clock.after(10, () => seen.push(`a@${clock.monotonicMs()}`));
  clock.after(20, () => seen.push(`c@${clock.monotonicMs()}`));
  await clock.advance(15);
  deepEqual(seen, ["a@10"]);
  await clock.advance(15);
  deepEqual(seen, ["a@10", "b@20", "c@20"]);
  equal(clock.monotonicMs(), 30);
});

test("an aborted sleep rejects with the reason and leaves no timer", async () => {
  const clock = new ManualClock();
  const abort = new AbortController();
  const sleeping = clock.sleep(1_000, abort.signal);
  abort.abort(new Error("enough"));
  await rejects(sleeping, /enough/);
  equal(clock.pending, 0);
});
