import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import { Fault } from "#base/fault.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { createMemoryBlobs } from "#blobs/memory/memory.ts";
import { memoryRecords } from "#records/memory.ts";
import { watchedRecords } from "#records/watch.ts";
import { Deliveries } from "./deliveries.ts";
import { DeliveryFollower } from "./follow.ts";
import { ownerAmong } from "./owner.ts";

function rig() {
  const clock = new ManualClock(1_000_000_000);
  const records = watchedRecords(
    memoryRecords(() => clock.wallMs()),
    clock,
  );
  const blobs = createMemoryBlobs({ clock, sizeBytesMax: 1_000_000 });
  const deliveries = new Deliveries({ records, blobs, clock });
  const ran: string[] = [];
  const state: { fails?: Error; owner: string } = { owner: "a" };
  const follower = (node: string) =>
    new DeliveryFollower({
      deliveries,
      clock,
      repository: async (tenant, name) => ({ tenant, name, url: "/x" }),
      owns: () => state.owner === node,
      run: async ({ value }) => {
        ran.push(`${node} ${value.id}`);
        if (state.fails) throw state.fails;
        return { started: [{ path: "w", run: "j0-1", created: true }], passed: [] };
      },
      warn: () => {},
    });
  const accept = (id: string, event = "push", payload: unknown = { id }) =>
    deliveries.accept("acme", { repository: "a/b", forge: "github", event, id, payload });
  const ends = async () =>
    (await deliveries.list("acme", "A/B")).map(({ value }) => [value.id, value.handledMs !== undefined, value.tries]);
  return { clock, deliveries, ran, state, follower, accept, ends };
}

test("IN2 the same delivery is one record, and so is a push under another id", async () => {
  const { accept } = rig();
  equal((await accept("1", "push", { after: "x" })).created, true);
  equal((await accept("1", "push", { after: "x" })).created, false);
  equal((await accept("2", "push", { after: "x" })).created, false);
  equal((await accept("3", "push", { after: "y" })).created, true);
  equal((await accept("4", "repository_dispatch", {})).created, true);
  equal((await accept("5", "repository_dispatch", {})).created, true);
  equal((await accept("5", "repository_dispatch", {})).created, false);
});

test("IN1 the owner works on what waits, again when it failed; another node, when it is gone", async () => {
  const { clock, ran, state, follower, accept, ends } = rig();
  await accept("before");
  {
    await using _a = follower("a");
    await using _b = follower("b");
    await clock.advance(2_000);
    deepEqual(ran, ["a before"]);
    state.fails = new Fault("unavailable", "reach git", {});
    await accept("late");
    await clock.advance(500);
    deepEqual(ran.at(-1), "a late");
    deepEqual(
      (await ends()).find(([id]) => id === "late"),
      ["late", false, 1],
    );
  }
  state.owner = "b";
  delete state.fails;
  await using _b = follower("b");
  await clock.advance(10_000);
  deepEqual(ran.at(-1), "b late");
  deepEqual(
    (await ends()).every(([, handled]) => handled),
    true,
  );
  const count = ran.length;
  await clock.advance(60_000);
  equal(ran.length, count, "what was handled is not worked on again");
});

test("IN1 what can never work is handled, with the reason; what a day did not help, too", async () => {
  const { clock, deliveries, state, follower, accept, ends } = rig();
  state.fails = new Fault("invalid", "read it", {});
  await using _a = follower("a");
  await accept("wrong");
  await clock.advance(2_000);
  deepEqual(await ends(), [["wrong", true, 0]]);
  equal((await deliveries.list("acme", "a/b"))[0]?.value.why, "read it: invalid");
});

test("IN3 what was handled a week ago is forgotten, and so is the oldest where there is no room", async () => {
  const { clock, deliveries, follower, accept, ends } = rig();
  await using _a = follower("a");
  await accept("old");
  await clock.advance(2_000);
  clock.wallAheadMs += 8 * 24 * 3_600_000;
  await accept("new");
  await clock.advance(2_000);
  equal(await deliveries.forget("acme"), 1);
  deepEqual(await ends(), [["new", true, 0]]);
  equal(await deliveries.forget("acme", 1), 1);
});

test("all nodes agree who looks after something, and only its part moves when one goes", () => {
  const keys = Array.from({ length: 100 }, (_, at) => `t/${at}`);
  const of = (nodes: readonly string[]) => keys.map((key) => ownerAmong(nodes, key));
  deepEqual(of(["a", "b", "c"]), of(["c", "a", "b"]));
  const [three, two] = [of(["a", "b", "c"]), of(["a", "b"])];
  equal(
    three.every((owner, at) => owner === "c" || owner === two[at]),
    true,
  );
});
