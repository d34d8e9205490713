import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { memoryRecords } from "#records/memory.ts";
import { watchedRecords } from "#records/watch.ts";
import type { HostedShard } from "#shard/host/shard.ts";
import { IsolatedTenants } from "./actions/isolated-tenants.ts";
import { HeavyTenants } from "./heavy-tenants.ts";
import { TenantLoads, type TenantShares } from "./tenant-loads.ts";

const isolatedTenants = () => {
  const clock = new ManualClock();
  const records = watchedRecords(
    memoryRecords(() => clock.wallMs()),
    clock,
  );
  return new IsolatedTenants(records, () => {});
};

/** Shards of this node, with the part of its time that each takes, and of whom. */
function rig(isolateAt: number | undefined) {
  const world = {
    loads: new Map<number, number>(),
    shares: new Map<number, TenantShares>(),
    isolated: new Set<number>(),
    shards: 8,
    log: [] as string[],
  };
  const tenants = isolatedTenants();
  const heavy = new HeavyTenants({
    node: "a",
    shards: () => world.shards,
    loads: () =>
      new Map([...world.loads].map(([shard, loopShare]) => [shard, { commandsPerS: 0, eventsPerS: 0, loopShare }])),
    shares: () => world.shares,
    tenants,
    isIsolated: (shard) => world.isolated.has(shard),
    isolateAt,
    log: (line) => world.log.push(line),
  });
  const look = async (times: number) => {
    for (let i = 0; i < times; i += 1) await heavy.look();
  };
  const set = (shard: number, loopShare: number, of: Readonly<Record<string, number>>) => {
    world.loads.set(shard, loopShare);
    world.shares.set(shard, new Map(Object.entries(of)));
  };
  return { world, tenants, heavy, look, set };
}

describe("tenants with a node of their own", () => {
  test("whose work a shard is, is counted from its events", () => {
    const jobs = new Map([
      [1, { tenant: { name: "t" } }],
      [2, { tenant: { name: "u" } }],
    ]);
    const shard = { shard: 3, state: { jobs } } as unknown as HostedShard;
    const loads = new TenantLoads();
    for (let seq = 1; seq <= 64; seq += 1)
      loads.durable(shard, { stamp: { epoch: 1, seq }, jobs: [1, 1, 1, 2, undefined, 99] });
    loads.sample();
    deepEqual(
      [...(loads.shares.get(3) ?? [])],
      [
        ["t", 0.75],
        ["u", 0.25],
      ],
    );
    loads.sample();
    equal(loads.shares.get(3)?.get("t"), 0.75, "a quiet shard stays whose it was");
    loads.gone(shard);
    loads.sample();
    equal(loads.shares.size, 0);
  });

  test("by hand: shards that are mostly the tenant's work belong on its node, no others", async () => {
    const { world, tenants, look, set } = rig(undefined);
    set(0, 0.3, { t: 0.9, u: 0.1 });
    set(1, 0.3, { t: 0.2, u: 0.8 });
    set(2, 0.001, { t: 1 });
    set(3, 0.2, { t: 0.6 });
    world.isolated.add(3);
    await look(20);
    equal(tenants.all.size, 0, "without a rule and without a hand nothing happens");
    await tenants.isolate("t", { node: "b", by: "hand", shards: [] });
    await look(5);
    deepEqual(tenants.all.get("t")?.shards, []);
    await look(1);
    deepEqual([...tenants.homes], [[0, { node: "b", tenant: "t" }]]);
    set(0, 0.3, { t: 0.3 });
    await look(100);
    deepEqual(tenants.all.get("t")?.shards, [0], "still more than half of what made it the tenant's");
    set(0, 0.3, { t: 0.1 });
    await look(60);
    deepEqual(tenants.all.get("t")?.shards, []);
    equal(await tenants.release("t"), true);
    equal(await tenants.release("t"), false);
  });

  test("no tenant gets more than half of all shards", async () => {
    const { world, tenants, look, set } = rig(undefined);
    await tenants.isolate("t", { node: "b", by: "hand", shards: [] });
    for (let shard = 0; shard < world.shards; shard += 1) set(shard, 0.1, { t: 1 });
    await look(30);
    equal(tenants.all.get("t")?.shards.length, 4);
  });

  test("by rule: after half a minute this node is kept for it, and after five quiet ones no longer", async () => {
    const { world, tenants, heavy, look, set } = rig(0.5);
    set(0, 0.4, { t: 0.9, u: 0.1 });
    set(1, 0.3, { t: 0.8 });
    set(2, 0.1, { u: 1 });
    await look(5);
    equal(tenants.all.size, 0);
    deepEqual(heavy.loads[0]?.tenant, "t");
    await look(1);
    deepEqual(tenants.all.get("t"), { node: "a", by: "rule", shards: [0, 1] });
    set(0, 0.1, { t: 0.9 });
    set(1, 0.1, { t: 0.8 });
    await look(59);
    equal(tenants.all.size, 1);
    await look(1);
    equal(tenants.all.size, 0);
    equal(world.log.length, 2);
  });

  test("by rule: a node with nothing but the tenant's work is not touched", async () => {
    const { tenants, look, set } = rig(0.5);
    set(0, 0.4, { t: 1 });
    set(1, 0.4, { t: 1 });
    await look(30);
    equal(tenants.all.size, 0);
  });
});
