import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import { UntilLeaving } from "./until-leaving.ts";

test("a held call ends by itself, or when the node leaves, whichever comes first", () => {
  const leaving = new AbortController();
  const until = new UntilLeaving(leaving.signal);
  const calls = [1, 2, 3].map(() => new AbortController());
  const held = calls.map(({ signal }) => until.hold(signal));
  const reasons = (): readonly unknown[] => held.map(({ signal }) => signal.reason);
  calls[0]?.abort("gone");
  held[1]?.[Symbol.dispose]();
  leaving.abort("leaving");
  calls[1]?.abort("late");
  calls[2]?.abort("late");
  deepEqual(reasons(), ["gone", undefined, "leaving"], "the second one was let go before");
  equal(until.hold(new AbortController().signal).signal.reason, "leaving", "and so does one that comes later");
});

test("without a leaving node it is the call's own signal", () => {
  const { signal } = new AbortController();
  equal(new UntilLeaving(undefined).hold(signal).signal, signal);
});
