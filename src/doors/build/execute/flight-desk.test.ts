import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { FlightDesk, type DeskAnswer, type DeskLimits, type DeskQuestion } from "./flight-desk.ts";

const never = new AbortController().signal;
const shared = { payload: "{}", digests: [], isForCache: true };

function rig(limits: Partial<DeskLimits> = {}) {
  const clock = new ManualClock();
  const desk = new FlightDesk(clock, limits);
  const enter = (runner: string, more: Partial<DeskQuestion> = {}, signal = never): Promise<DeskAnswer> =>
    desk.enter({ key: "k", runner, waitMs: 0, takesEnded: false, ...more }, signal);
  return { clock, desk, enter };
}

const yours = { kind: "yours" };
const busy = { kind: "busy" };

describe("a desk for running actions", () => {
  test("the first caller runs it, the others wait and get its result", async () => {
    const { desk, enter } = rig();
    deepEqual(await enter("a"), yours);
    deepEqual(await enter("a"), yours, "asked again");
    deepEqual(await enter("b"), busy);
    deepEqual(await enter("b", { key: "other" }), yours);
    const waiting = [enter("b", { waitMs: 1_000 }), enter("c", { waitMs: 1_000 })];
    await desk.end("k", "b", shared);
    await desk.end("k", "a", shared);
    deepEqual(await Promise.all(waiting), [
      { kind: "shared", shared },
      { kind: "shared", shared },
    ]);
    deepEqual(await enter("d"), yours, "it is over");
  });

  test("after a run without a shared result the next caller runs it", async () => {
    const { desk, enter } = rig();
    await enter("a");
    const waiting = enter("b", { waitMs: 1_000 });
    await desk.end("k", "a", undefined);
    deepEqual(await waiting, { kind: "ended" });
    deepEqual([await enter("b"), await enter("c")], [yours, busy]);
  });

  test("FL1: a silent runner is given up, one that renews is not", async () => {
    const { clock, enter } = rig({ leaseMs: 10_000 });
    await enter("a");
    const waiting = enter("b", { waitMs: 60_000 });
    for (let i = 0; i < 5; i += 1) {
      await clock.advance(9_000);
      deepEqual(await enter("a"), yours);
    }
    await clock.advance(9_999);
    deepEqual(await enter("c"), busy);
    await clock.advance(1);
    deepEqual(await waiting, { kind: "ended" });
    deepEqual(await enter("c"), yours);
  });

  test("a waiting caller is answered when its time is over, and can leave before", async () => {
    const { clock, enter } = rig();
    await enter("a");
    const [late, gone] = [enter("b", { waitMs: 500 }), new AbortController()];
    const left = enter("c", { waitMs: 500 }, gone.signal);
    gone.abort();
    deepEqual(await left, busy);
    await clock.advance(500);
    deepEqual(await late, busy);
  });

  test("a result that is about to be in the cache is kept a moment for callers that missed it there", async () => {
    const { clock, desk, enter } = rig({ endedMs: 5_000 });
    await enter("a");
    await desk.end("k", "a", shared);
    await clock.advance(4_999);
    deepEqual(await enter("b", { takesEnded: true }), { kind: "shared", shared });
    deepEqual(await enter("c"), yours, "who wants it run anyway runs it");
    deepEqual(await enter("d", { takesEnded: true }), busy, "and then it is a run like any other");
    await desk.end("k", "c", { ...shared, isForCache: false });
    await clock.advance(1);
    deepEqual(await enter("e", { takesEnded: true }), yours);
    await desk.end("k", "e", { ...shared, isForCache: false });
    deepEqual(await enter("f", { takesEnded: true }), yours, "a failure is not kept");
  });

  test("FL2: beyond the limits every caller runs its own", async () => {
    const { desk, enter } = rig({ runsMax: 1, waitingMax: 1, endedMax: 2, endedDigestsMax: 1 });
    await enter("a");
    deepEqual(await enter("b", { key: "2" }), yours);
    deepEqual(await enter("c", { key: "2" }), yours, "nobody knows of b's");
    const waiting = enter("b", { waitMs: 1_000 });
    deepEqual(await enter("c", { waitMs: 1_000 }), busy);
    await desk.end("k", "a", { ...shared, digests: ["1/1", "2/2"] });
    equal((await waiting).kind, "shared");
    deepEqual(await enter("d", { takesEnded: true }), yours, "too large to be kept");
    await desk.end("k", "d", undefined);
    for (const key of ["1", "2", "3"]) {
      await enter("a", { key });
      await desk.end(key, "a", shared);
    }
    const kinds = ["1", "2", "3"].map(async (key) => {
      const { kind } = await enter("z", { key, takesEnded: true });
      await desk.end(key, "z", undefined);
      return kind;
    });
    deepEqual(await Promise.all(kinds), ["yours", "shared", "shared"]);
  });
});
