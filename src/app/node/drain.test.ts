import { deepEqual, equal, rejects } from "node:assert/strict";
import { describe, test } from "node:test";
import { isFault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { Drain } from "./drain.ts";

function scene(running: number) {
  const clock = new ManualClock();
  const did: string[] = [];
  const worker = { running, planning: 0, telling: 0 };
  let shards = 3;
  const drain = new Drain({
    clock,
    node: {
      async leave() {
        did.push("leave");
        await clock.sleep(50);
        shards = 0;
      },
      async resume() {
        did.push("take back");
        shards = 3;
      },
      shards: () => shards,
    },
    worker: () => ({
      async hold() {
        did.push("hold");
      },
      resume: () => void did.push("resume"),
      giveBack() {
        did.push("give back");
        worker.running = 0;
      },
      status: () => ({ ...worker, slots: 4, draining: false }),
    }),
    log: () => {},
  });
  let left = false;
  void drain.left.then(() => (left = true));
  return { clock, did, worker, drain, hasLeft: () => left };
}

describe("a drain", () => {
  test("lets running attempts finish, then leaves", async () => {
    const { clock, did, worker, drain, hasLeft } = scene(2);
    equal(drain.begin({ withinMs: 60_000, leave: true }).state, "draining");
    await clock.advance(30_000);
    deepEqual(drain.view(), { state: "draining", running: 2, shards: 0, forMs: 30_000, leaves: true });
    worker.running = 0;
    worker.telling = 1;
    await clock.advance(1_000);
    equal(hasLeft(), false, "the shard has not heard of its end yet");
    worker.telling = 0;
    await clock.advance(200);
    equal(hasLeft(), true);
    deepEqual(did, ["leave", "hold"]);
  });

  test("releases what still runs when the time is up", async () => {
    const { clock, did, drain, hasLeft } = scene(1);
    drain.begin({ withinMs: 5_000, leave: true });
    await clock.advance(4_900);
    deepEqual(did, ["leave", "hold"]);
    await clock.advance(300);
    deepEqual(did, ["leave", "hold", "give back"]);
    equal(hasLeft(), true);
  });

  test("stays if it was asked to, until it is resumed", async () => {
    const { clock, did, drain, hasLeft } = scene(0);
    drain.begin({ withinMs: 5_000, leave: false });
    await clock.advance(1_000);
    equal(drain.view().state, "drained");
    equal(hasLeft(), false);
    deepEqual(await drain.resume(), { state: "serving", running: 0, shards: 3, forMs: 0, leaves: false });
    deepEqual(did, ["leave", "hold", "resume", "take back"]);
    drain.begin({ withinMs: 5_000, leave: true });
    await clock.advance(1_000);
    equal(hasLeft(), true);
  });

  test("is undone in the middle, and has no later effect", async () => {
    const { clock, did, drain, hasLeft } = scene(1);
    drain.begin({ withinMs: 5_000, leave: true });
    await clock.advance(1_000);
    await drain.resume();
    await clock.advance(60_000);
    deepEqual(did, ["leave", "hold", "resume", "take back"]);
    deepEqual([drain.view().state, hasLeft()], ["serving", false]);
  });

  test("called again, the last settings count; a node that is leaving cannot be resumed", async () => {
    const { clock, drain, hasLeft } = scene(1);
    drain.begin({ withinMs: 3_600_000, leave: false });
    drain.begin({ withinMs: 1_000, leave: true });
    await clock.advance(2_000);
    equal(hasLeft(), true);
    await rejects(drain.resume(), (error) => isFault(error, "stale"));
  });
});
