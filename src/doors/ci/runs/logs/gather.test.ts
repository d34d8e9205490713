import { deepEqual } from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { gathered } from "./gather.ts";
import type { LogBatch } from "./log-feed.ts";

/** Lines of ten bytes. */
function batches() {
  let offset = 0;
  return (count: number, token = 1): LogBatch => {
    const from = offset;
    offset += count * 10;
    const ends = Array.from({ length: count }, (_, at) => from + (at + 1) * 10);
    const lines = ends.map((end) => ({ at: "now", kind: "plain" as const, text: String(end) }));
    return { token, offset: from, lines, ends, end: offset };
  };
}

test("lines that come within 100 ms are one batch, of 100 lines at most, up to the place behind them", async () => {
  const clock = new ManualClock(0);
  const step = Promise.withResolvers<void>();
  const next = batches();
  async function* source() {
    yield next(2);
    yield next(3);
    yield next(96);
    await step.promise;
    yield next(1);
    yield next(100);
    yield { ...next(0), ended: true as const };
  }
  const seen: string[] = [];
  const all = (async () => {
    for await (const { offset, end, lines, ends, ended } of gathered(source(), clock))
      seen.push(`${offset}-${end}:${lines.length}/${ends.length}${ended ? " end" : ""}`);
  })();
  await clock.advance(99);
  deepEqual(seen, ["0-50:5/5"]);
  await clock.advance(1);
  deepEqual(seen, ["0-50:5/5", "50-1010:96/96"]);
  step.resolve();
  await all;
  deepEqual(seen, ["0-50:5/5", "50-1010:96/96", "1010-1020:1/1", "1020-2020:100/100", "2020-2020:0/0 end"]);
});

test("lines of two attempts are never one batch", async () => {
  const next = batches();
  async function* source() {
    yield next(1, 1);
    yield next(1, 2);
  }
  const seen = await Array.fromAsync(gathered(source(), new ManualClock(0)), ({ token, lines }) => [
    token,
    lines.length,
  ]);
  deepEqual(seen, [
    [1, 1],
    [2, 1],
  ]);
});
