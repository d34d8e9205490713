import { equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { must } from "#base/assert.ts";
import type { Grant } from "#kernel/model.ts";
import { replyOf, reserve, Rig, submit, type TestNode } from "./host-rig.ts";

const cluster = { shards: 2, clusterId: "test" };
const tenant = { kind: "set-tenant", tenant: "t", weight: 1, runningMax: 4, queuedMax: 0, home: 0 } as const;

async function grantsIn(node: TestNode, shard: number, executor: string): Promise<number> {
  const command = reserve({ executor, count: 100, nonce: `${executor} ${(nonces += 1)}` });
  const response = await node.node.request({ kind: "command", shard, command });
  return replyOf<{ grants: readonly Grant[] }>(response).grants.length;
}
let nonces = 0;

async function withTenant(node: TestNode, shards: readonly number[]): Promise<void> {
  for (const shard of shards) {
    replyOf(await node.node.request({ kind: "command", shard, command: tenant }));
    replyOf(await node.node.request({ kind: "command", shard, command: submit({ tasks: 20 }) }));
  }
}

describe("a tenant's running quota over several shards", () => {
  test("is lent by its home, and never given out twice", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a", { cluster })).serving([0, 1]);
    await withTenant(a, [0, 1]);
    equal(await grantsIn(a, 1, "e1"), 0, "nothing lent yet");
    await rig.clock.advance(1_500);
    const away = await grantsIn(a, 1, "e1");
    const home = await grantsIn(a, 0, "e2");
    ok(away > 0, "it got some");
    ok(home > 0, "and so did its home");
    equal(away + home, 4);
  });

  test("is fetched from another node, and asked for again before it runs out", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a", { cluster, broker: { sliceMs: 6_000 } })).serving([0, 1]);
    const b = await rig.node("b", { cluster, broker: { sliceMs: 6_000 } });
    await rig.clock.advance(6_000);
    const nodeOf = (shard: number): TestNode =>
      must(
        [a, b].find(({ node }) => node.host.shards.has(shard)),
        "owner",
      );
    ok(nodeOf(0) !== nodeOf(1));
    await withTenant(nodeOf(0), [0]);
    await withTenant(nodeOf(1), [1]);
    await rig.clock.advance(1_500);
    const { state } = must(nodeOf(1).node.host.shards.get(1), "shard");
    const slice = () => must(state.tenants.get("t"), "tenant").slice;
    ok(slice().slots > 0);
    const untilMs = slice().untilMs;
    await rig.clock.advance(5_000);
    ok(slice().untilMs > untilMs, "renewed");
    ok((await grantsIn(nodeOf(1), 1, "e1")) > 0);
  });

  test("may be used up to two rounds before the lender takes it back: time to tell of a claim", async () => {
    const rig = new Rig();
    const broker = { sliceMs: 10_000, everyMs: 1_000 };
    const a = await (await rig.node("a", { cluster, broker })).serving([0, 1]);
    await withTenant(a, [0, 1]);
    await rig.clock.advance(1_500);
    const tenantIn = (shard: number) =>
      must(must(a.node.host.shards.get(shard), "shard").state.tenants.get("t"), "tenant");
    const lentUntilMs = Math.max(...must(tenantIn(0).lent.get(1), "slices").map(({ untilMs }) => untilMs));
    ok(tenantIn(1).slice.slots > 0);
    ok(lentUntilMs - tenantIn(1).slice.untilMs >= 2 * broker.everyMs);
  });

  test("counts from before it was asked for, however long the answer takes", async () => {
    const rig = new Rig();
    const broker = { sliceMs: 10_000, everyMs: 1_000 };
    const a = await (await rig.node("a", { cluster, broker })).serving([0, 1]);
    await withTenant(a, [0, 1]);
    a.journal.fail("append", "answered late"); // the loan is made, and its answer is late
    const appends = a.journal.count("append");
    while (a.journal.count("append") === appends) await rig.clock.advance(10);
    await rig.clock.advance(3_000);
    a.journal.deliver();
    await rig.clock.advance(100);
    const tenantIn = (shard: number) =>
      must(must(a.node.host.shards.get(shard), "shard").state.tenants.get("t"), "tenant");
    const lentUntilMs = Math.max(...must(tenantIn(0).lent.get(1), "slices").map(({ untilMs }) => untilMs));
    ok(tenantIn(1).slice.slots > 0);
    ok(lentUntilMs - tenantIn(1).slice.untilMs >= 2 * broker.everyMs);
  });
});
