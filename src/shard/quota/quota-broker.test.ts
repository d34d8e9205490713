import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { must } from "#base/assert.ts";
import { ManualClock } from "#base/testing/manual-clock.ts";
import type { Claim } from "#kernel/model/entities.ts";
import type { Grant } from "#kernel/model/model.ts";
import { Transcript } from "#kernel/testing/transcript.ts";
import { replyOf, reserve, Rig, submit, type TestNode } from "#shard/testing/host.ts";
import type { HostedShard } from "#shard/host/shard.ts";
import { defaultBrokerSettings, QuotaBroker } from "./quota-broker.ts";

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
  test("is lent by its home shard, and never twice", async () => {
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

  test("is fetched from another node, and requested again before it expires", async () => {
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

  test("may be used until two rounds before the lender takes it back: time to report a claim", async () => {
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

  test("counts from before it was requested, however long the answer takes", async () => {
    const rig = new Rig();
    const broker = { sliceMs: 10_000, everyMs: 1_000 };
    const a = await (await rig.node("a", { cluster, broker })).serving([0, 1]);
    await withTenant(a, [0, 1]);
    a.journal.fail("append", "answered late"); // the slots are lent, and the answer is late
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

  const commitAll = async (node: TestNode, shard: number, executor: string): Promise<void> => {
    const { state } = must(node.node.host.shards.get(shard), "shard");
    const held = state.executors.get(executor)?.claims ?? new Map<number, Claim>();
    for (const { token, task } of held.values()) {
      const command = { kind: "fail", executor, task: task.no, token, reason: "user-failure", message: "" } as const;
      replyOf(await node.node.request({ kind: "command", shard, command }));
    }
  };

  test("goes back within a second when the work is done: another shard uses it", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a", { cluster: { ...cluster, shards: 3 } })).serving([0, 1, 2]);
    for (const shard of [0, 1, 2]) replyOf(await a.node.request({ kind: "command", shard, command: tenant }));
    replyOf(await a.node.request({ kind: "command", shard: 1, command: submit({ tasks: 4 }) }));
    await rig.clock.advance(1_000);
    equal(await grantsIn(a, 1, "e1"), 4, "it is lent all");
    await rig.clock.advance(2_000);
    replyOf(await a.node.request({ kind: "command", shard: 2, command: submit({ tasks: 4 }) }));
    await commitAll(a, 1, "e1");
    await rig.clock.advance(1_100);
    equal(must(must(a.node.host.shards.get(0), "home").state.tenants.get("t"), "tenant").lent.has(1), false);
    await rig.clock.advance(500);
    equal(await grantsIn(a, 2, "e2"), 4);
  });

  test("one slot stays where tasks come and go between two rounds", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a", { cluster })).serving([0, 1]);
    for (const shard of [0, 1]) replyOf(await a.node.request({ kind: "command", shard, command: tenant }));
    const { state } = must(a.node.host.shards.get(1), "shard");
    replyOf(await a.node.request({ kind: "command", shard: 1, command: submit({ tasks: 3 }) }));
    await rig.clock.advance(1_000);
    equal(await grantsIn(a, 1, "e1"), 3);
    await commitAll(a, 1, "e1");
    for (let i = 0; i < 10; i += 1) {
      await rig.clock.advance(250);
      const command = submit({ tasks: 1, requestKey: `k${i}` });
      replyOf(await a.node.request({ kind: "command", shard: 1, command }));
      equal(await grantsIn(a, 1, "e1"), 1, `piece ${i} waits for no slot`);
      await commitAll(a, 1, "e1");
      await rig.clock.advance(250);
    }
    equal(must(state.tenants.get("t"), "tenant").slice.slots, 1);
  });

  test("the lender hears of the smaller slice when it is durable, with the claims that came in between", async () => {
    const clock = new ManualClock();
    const home = new Transcript({ shard: 0 });
    const away = new Transcript({ shard: 1 });
    for (const one of [home, away]) one.say("tenant acme running=4 home=0");
    for (const job of ["i : a[x]", "j : a[y]", "k : a[z]"]) away.say(`submit ${job}`);
    const hosted = { shard: 1, phase: "serving", state: away.state } as unknown as HostedShard;
    const said: string[] = [];
    const broker = new QuotaBroker({
      clock,
      settings: defaultBrokerSettings,
      shards: () => [hosted],
      ask: async (_shard, command) => {
        said.push(`ask ${command.want} running=${command.running} holds=${command.holds}`);
        const outcome = home.do(command);
        ok(outcome.ok);
        return { kind: "reply", reply: outcome.reply, stamp: { epoch: 1, seq: 1 } };
      },
      give: async (_shard, command) => {
        if (command.slots === 1) {
          away.say("submit l : a[v,w]");
          said.push(away.say("reserve bea n=9"));
        }
        for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
        said.push(`take ${command.slots}`);
        away.do(command);
      },
      report: (_doing, error) => void said.push(String(error)),
    });
    broker.start();
    await clock.advance(500);
    for (const line of ["reserve ada", "cancel j", "cancel k"]) away.say(line);
    await clock.advance(1_000);
    broker.kill();
    deepEqual(said, [
      "ask 3 running=0 holds=undefined",
      "take 3",
      "ask 1 running=1 holds=1000000",
      "v#2 w#3; v w CLAIMED",
      "take 1",
      "ask 1 running=3 holds=1000001",
      "take 3",
    ]);
    home.specify("lend acme to=2 want=9 -> slots=1 forMs=10000 slice=1000003");
  });
});
