import { deepEqual } from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { gathered } from "./gather.ts";

const event = (id: number, lines: number) => ({
  id: String(id),
  data: { lines: Array.from({ length: lines }, () => id) },
});

test("lines that come within 100 ms are one event, never of more than 100 lines, with the id of the last", async () => {
  const clock = new ManualClock(0);
  const step = Promise.withResolvers<void>();
  async function* source() {
    yield event(1, 2);
    yield event(2, 3);
    yield event(3, 96);
    await step.promise;
    yield event(4, 1);
    yield event(5, 100);
    yield { id: "6", data: { lines: [], ended: true as const } };
  }
  const seen: string[] = [];
  const all = (async () => {
    for await (const { id, data } of gathered(source(), clock))
      seen.push(`${id}:${data.lines.length}${data.ended ? " end" : ""}`);
  })();
  await clock.advance(99);
  deepEqual(seen, ["2:5"]);
  await clock.advance(1);
  deepEqual(seen, ["2:5", "3:96"]);
  step.resolve();
  await all;
  deepEqual(seen, ["2:5", "3:96", "4:1", "5:100", "6:0 end"]);
});
