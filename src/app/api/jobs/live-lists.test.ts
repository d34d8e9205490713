import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock, settle } from "#base/testing/manual-clock.ts";
import { LiveLists } from "./live-lists.ts";

const limits = { everyMs: 1_000, quietMs: 60_000, listsMax: 10, viewersMax: 10 };

function rig(changes?: (signal: AbortSignal) => AsyncIterable<unknown>) {
  const clock = new ManualClock();
  const stop = new AbortController();
  const rigged = { clock, reads: 0, value: 0, seen: [] as number[], stop, done: Promise.resolve() };
  const read = async (): Promise<number> => ((rigged.reads += 1), rigged.value);
  const lists = new LiveLists({
    ...limits,
    clock,
    read,
    changes: changes && ((_key, signal) => changes(signal)),
  });
  rigged.done = (async () => {
    for await (const value of lists.follow("all", stop.signal)) rigged.seen.push(value);
  })();
  return rigged;
}

/** Yields once for each call of `tell`, until it is aborted. */
function changing() {
  let wake = Promise.withResolvers<void>();
  return {
    tell: () => wake.resolve(),
    async *changes(signal: AbortSignal): AsyncGenerator<void> {
      signal.addEventListener("abort", () => wake.resolve(), { once: true });
      while (!signal.aborted) {
        await wake.promise;
        wake = Promise.withResolvers();
        yield;
      }
    },
  };
}

describe("lists that viewers keep open", () => {
  test("are read when something has changed: at once after a quiet time, and at most once a second", async () => {
    const source = changing();
    const list = rig((signal) => source.changes(signal));
    await list.clock.advance(30_000);
    deepEqual([list.reads, list.seen], [1, [0]]);
    for (let i = 1; i <= 3; i += 1) {
      list.value = i;
      source.tell();
      await settle();
    }
    deepEqual([list.reads, list.seen], [2, [0, 1]]);
    await list.clock.advance(999);
    equal(list.reads, 2);
    await list.clock.advance(1);
    deepEqual([list.reads, list.seen], [3, [0, 1, 3]]);
    await list.clock.advance(59_000);
    equal(list.reads, 3);
    await list.clock.advance(2_000);
    equal(list.reads, 4, "now and then without a change");
    list.stop.abort();
    await list.done;
    await list.clock.advance(120_000);
    equal(list.reads, 4, "a list without viewers is not read");
  });

  test("are read every second while changes cannot be followed", async () => {
    const next = (): Promise<never> => Promise.reject(new Error("the feed has no room"));
    const failing = rig(() => ({ [Symbol.asyncIterator]: () => ({ next }) }));
    const without = rig();
    for (const list of [failing, without]) {
      await list.clock.advance(10_000);
      equal(list.reads >= 8 && list.reads <= 13, true, `${list.reads} reads`);
      list.stop.abort();
      await list.done;
    }
  });
});
