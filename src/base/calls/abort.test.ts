import { equal, rejects } from "node:assert/strict";
import { test } from "node:test";
import { Deadline, orAborted } from "./abort.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";

test("orAborted rejects with the signal's reason, also when it was aborted before", async () => {
  const abort = new AbortController();
  const waiting = orAborted(new Promise(() => {}), abort.signal);
  abort.abort(new Error("enough"));
  await rejects(waiting, /enough/);
  await rejects(orAborted(new Promise(() => {}), abort.signal), /enough/);
  equal(await orAborted(Promise.resolve(7), new AbortController().signal), 7);
});

test("a deadline aborts after its time, which may be extended, and leaves no timer when disposed of", async () => {
  const clock = new ManualClock();
  {
    using limited = new Deadline(clock, 100, undefined, () => new Error("late"));
    await clock.advance(60);
    limited.extend(100);
    await clock.advance(60);
    equal(limited.signal.aborted, false);
    await clock.advance(60);
    equal((limited.signal.reason as Error).message, "late");
  }
  const outer = new AbortController();
  using inner = new Deadline(clock, 100, outer.signal, () => new Error("late"));
  outer.abort(new Error("outer"));
  equal((inner.signal.reason as Error).message, "outer");
  inner[Symbol.dispose]();
  equal(clock.pending, 0);
});

test("an extended deadline keeps its timer, and runs on for as long as its callback says", async () => {
  const clock = new ManualClock();
  const answers = [50, new Error("late")];
  using limited = new Deadline(clock, 100, undefined, () => answers.shift() ?? 0);
  limited.extend(Number.POSITIVE_INFINITY);
  equal(clock.pending, 1);
  await clock.advance(1_000);
  equal(clock.pending, 0);
  limited.extend(100);
  limited.extend(200);
  equal(clock.pending, 1);
  await clock.advance(240);
  equal(answers.length, 1);
  equal(limited.signal.aborted, false);
  await clock.advance(10);
  equal(limited.signal.aborted, true);
  equal(clock.pending, 0);
});

test("orOver rejects with the deadline's reason; a disposed deadline no longer ends", async () => {
  const clock = new ManualClock();
  const outer = new AbortController();
  const limited = new Deadline(clock, 100, outer.signal, () => new Error("late"));
  equal(await limited.orOver(Promise.resolve(7)), 7);
  const waiting = limited.orOver(new Promise(() => {}));
  outer.abort(new Error("outer"));
  await rejects(waiting, /outer/);
  await rejects(limited.orOver(new Promise(() => {})), /outer/);
  using before = new Deadline(clock, 100, outer.signal, () => new Error("late"));
  await rejects(before.orOver(Promise.reject(new Error("its own"))), /outer/);
  const done = new Deadline(clock, 100, undefined, () => new Error("late"));
  done[Symbol.dispose]();
  done.end(new Error("too late"));
  done.extend(1);
  equal(done.signal.aborted, false);
  equal(clock.pending, 0);
});
