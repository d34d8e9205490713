import { equal, rejects } from "node:assert/strict";
import { test } from "node:test";
import { deadlineSignal, orAborted } from "./abort.ts";
import { ManualClock } from "./manual-clock.ts";

test("orAborted lets go with the signal's reason, also when it was aborted before", async () => {
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
    using limited = deadlineSignal(clock, 100, undefined, () => new Error("late"));
    await clock.advance(60);
    limited.extend(100);
    await clock.advance(60);
    equal(limited.signal.aborted, false);
    await clock.advance(60);
    equal((limited.signal.reason as Error).message, "late");
  }
  const outer = new AbortController();
  using inner = deadlineSignal(clock, 100, outer.signal, () => new Error("late"));
  outer.abort(new Error("outer"));
  equal((inner.signal.reason as Error).message, "outer");
  inner[Symbol.dispose]();
  equal(clock.pending, 0);
});
