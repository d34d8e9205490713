import { equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import { Memory } from "#kernel/memory/memory.ts";
import { Rig, submit } from "#shard/testing/host.ts";

const cluster = { shards: 2, clusterId: "test" };

describe("all shards of a node share its memory", () => {
  test("shards that are taken over count, and shards that are given up do not", async () => {
    const rig = new Rig();
    const memory = new Memory(1_000_000);
    const first = await (await rig.node("a", { memory, cluster })).serving([0, 1]);
    for (const shard of [0, 1]) await first.node.request({ kind: "command", shard, command: submit() });
    const states = [...first.node.host.shards.values()].map(({ state }) => state);
    equal(
      memory.bytes,
      states.reduce((sum, { bytes }) => sum + bytes, 0),
    );
    ok(states.every(({ bytes }) => bytes > 1_000));
    equal(first.node.status().memory?.workBytes, memory.bytes);
    first.node.host.drop(1, "moved");
    equal(memory.bytes, states[0]?.bytes);
    first.node.kill();
    const other = new Memory(1_000_000);
    const second = await (await rig.node("b", { memory: other, cluster })).serving([0, 1]);
    equal(
      other.bytes,
      [...second.node.host.shards.values()].reduce((sum, { state }) => sum + state.bytes, 0),
    );
    ok(other.heldBy(submit().tenant) > 2_000);
    second.node.kill();
  });

  test("work in one shard leaves less memory for the other", async () => {
    const rig = new Rig();
    const memory = new Memory(20_000);
    const node = await (await rig.node("a", { memory, cluster })).serving([0, 1]);
    const ask = async (shard: number, tenant: string) =>
      (await node.node.request({ kind: "command", shard, command: { ...submit(), tenant } })).kind;
    let taken = 0;
    for (; (await ask(0, "greedy")) === "reply" && taken < 100;) taken += 1;
    ok(taken > 0 && taken < 100);
    equal(await ask(1, "greedy"), "rejected");
    equal(await ask(1, "modest"), "reply");
    node.node.kill();
  });
});
