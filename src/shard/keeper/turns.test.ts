import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import type { Clock } from "#base/clock.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { Turns } from "./turns.ts";

describe("long work in slices", () => {
  test("runs one slice at a time", async () => {
    const clock = new ManualClock();
    const turns = new Turns(clock);
    const order: string[] = [];
    for (const name of ["a", "b", "c"]) void turns.next().then(() => order.push(name));
    await clock.advance(1);
    deepEqual(order, ["a", "b", "c"]);
  });

  test("pauses for work that needs the event loop more, and only then", async () => {
    const clock = new ManualClock();
    const turns = new Turns(clock);
    const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const order: string[] = [];
    await turns.hold(() => first.promise);
    void turns.hold(() => second.promise).then(() => order.push("the second begins"));
    void turns.next().then(() => order.push("in line"));
    void turns
      .slice()
      .next("first")
      .then(() => order.push("first"));
    await clock.advance(10);
    deepEqual(order, ["first"]);
    first.resolve();
    await clock.advance(10);
    deepEqual(order, ["first", "the second begins"]);
    second.resolve();
    await clock.advance(10);
    deepEqual(order, ["first", "the second begins", "in line"]);
  });

  test("a slice ends by its size, or by the time that it took", async () => {
    let mono = 0;
    const manual = new ManualClock();
    const clock: Clock = {
      monotonicMs: () => mono,
      wallMs: () => 0,
      sleep: (ms) => manual.sleep(ms),
      after: (ms, run) => manual.after(ms, run),
    };
    const slice = new Turns(clock).slice();
    const ends = (bytes: number, ms: number): boolean => {
      slice.work(bytes, () => void (mono += ms));
      return slice.isOver;
    };
    equal(ends(1_000, 1), false);
    mono += 1_000; // time spent waiting does not count
    equal(ends(1_000, 1), false);
    equal(ends(1_000, 10), true);
    const next = slice.next("in line");
    await manual.advance(1);
    await next;
    equal(ends(1_000, 1), false);
    equal(ends(1 << 20, 0), true);
  });
});
