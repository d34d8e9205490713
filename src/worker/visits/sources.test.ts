import { equal } from "node:assert/strict";
import { test } from "node:test";
import { Random } from "#base/random.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { WorkHints } from "./sources.ts";

test("a worker that hears of work in passing, after a slot became free, asks for it", async () => {
  const clock = new ManualClock();
  const answer = Promise.withResolvers<readonly (readonly [number, number])[]>();
  const leave = new AbortController();
  let free = 0;
  let [heard, woken] = [0, 0];
  const hints = new WorkHints(
    {
      // Asked in passing it answers late; a held request would wait for ever.
      sources: () =>
        new Map([["n", { ready: (_, waitMs) => (waitMs === 0 ? answer.promise : new Promise(() => {})) }]]),
      clock,
      random: new Random(1),
      room: () => ({ executor: "w", offers: [], free }),
      heard: () => void (heard += 1),
      onReady: () => void (woken += 1),
      pollMs: 5_000,
      everyMs: 250,
      log: () => {},
    },
    leave.signal,
  );
  void hints.listen();
  await clock.advance(10);
  free = 1;
  hints.roomChanged();
  answer.resolve([[0, 1]]);
  await clock.advance(10);
  equal(heard, 1);
  equal(woken, 1, "the pollers sleep, and know of no work");
  leave.abort();
});
