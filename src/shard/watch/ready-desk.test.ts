import { deepEqual } from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { plainTemplate } from "#kernel/testing/template.ts";
import { ReadyDesk, type ReadyShard, type FreeSlots } from "./ready-desk.ts";
import { testCluster } from "#shard/testing/client.ts";
import type { Order } from "#shard/client/client.ts";

const order = (requires: readonly string[]): Order => ({
  shardKey: "mill",
  tenant: "t",
  door: "test",
  name: "job",
  payloadHash: "",
  priority: 0,
  spec: "",
  deadlineMs: 3_600_000,
  stages: [
    {
      name: "s",
      needs: [],
      after: "success",
      failFast: false,
      mayFail: false,
      parallelMax: 0,
      tasks: {
        template: { ...plainTemplate, kind: "grind", requires, leaseMs: 3_000, retryOn: "any", backoffMs: 100 },
        tasks: [{ key: "0", spec: "" }],
      },
    },
  ],
});

async function scene() {
  const clock = new ManualClock();
  const cluster = await testCluster(clock, 4);
  const shards = () => cluster.shards.map(({ state }) => ({ shard: state.shard, phase: "serving", state }));
  const desk = new ReadyDesk({ clock, shards });
  const told: string[] = [];
  const never = new AbortController().signal;
  const wait = (executor: string, free: number, offers: readonly string[] = [], signal = never): void => {
    const room: FreeSlots = { executor, offers, free };
    const note = (ready: readonly ReadyShard[]): void => void told.push(`${executor} ${ready.map(([s]) => s).join()}`);
    void desk.wait(room, 1_000, signal).then(note);
  };
  const submit = async (requires: readonly string[] = []): Promise<number> => {
    const { jobId } = await cluster.client.submit(order(requires));
    return cluster.shards.findIndex(({ state }) => state.jobs.size > 0 && jobId !== "");
  };
  return { clock, desk, wait, told, submit };
}

describe("workers with free slots", () => {
  test("hear at once of waiting work, and only of work that they can do", async () => {
    const { clock, wait, told, submit } = await scene();
    const shard = await submit(["arch=x64"]);
    wait("able", 1, ["arch=x64", "os=linux"]);
    wait("unable", 1, ["os=linux"]);
    await clock.advance(10);
    deepEqual(told, [`able ${shard}`]);
    await clock.advance(1_000);
    deepEqual(told, [`able ${shard}`, "unable "]);
  });

  test("the emptiest worker hears of new work; the others if it does not claim it (RD1)", async () => {
    const { clock, desk, wait, told, submit } = await scene();
    wait("full soon", 1);
    wait("empty", 4);
    await clock.advance(10);
    deepEqual(told, []);
    const shard = await submit();
    desk.unclaimed(shard, { requires: [], planning: false, ready: 1 });
    await clock.advance(10);
    deepEqual(told, [`empty ${shard}`]);
    await clock.advance(50);
    deepEqual(told, [`empty ${shard}`, `full soon ${shard}`]);
  });

  test("the worker that is near the work hears of it first, while it has free slots", async () => {
    const { clock, desk, wait, told } = await scene();
    wait("empty", 4);
    wait("near", 1);
    await clock.advance(10);
    desk.unclaimed(1, { requires: [], planning: false, ready: 1, affinity: "near" });
    await clock.advance(1);
    deepEqual(told, ["near 1"]);
    desk.unclaimed(1, { requires: [], planning: false, ready: 1, affinity: "near" });
    await clock.advance(1);
    deepEqual(told, ["near 1", "empty 1"]);
  });

  test("as many workers hear of it as there is work for", async () => {
    const { clock, desk, wait, told } = await scene();
    for (const [i, free] of [1, 2, 3, 4].entries()) wait(`w${i}`, free);
    desk.unclaimed(2, { requires: [], planning: false, ready: 6 });
    await clock.advance(1);
    deepEqual(told, ["w3 2", "w2 2"]);
  });

  test("a worker that has left hears nothing", async () => {
    const { clock, desk, wait, told } = await scene();
    const gone = new AbortController();
    wait("gone", 4, [], gone.signal);
    wait("here", 1);
    gone.abort();
    desk.unclaimed(1, { requires: [], planning: false, ready: 1 });
    await clock.advance(1);
    deepEqual(told, ["gone ", "here 1"]);
  });
});
