import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import { must } from "#base/assert.ts";
import { settle } from "#base/testing/manual-clock.ts";
import type { Grant } from "#kernel/model/model.ts";
import { replyOf, reserve, Rig, submit } from "#shard/testing/host.ts";
import type { ShardResponse } from "#shard/transport/protocol.ts";

const granted = (response: ShardResponse): number => replyOf<{ grants: readonly Grant[] }>(response).grants.length;

async function isPending(promise: Promise<ShardResponse>): Promise<boolean> {
  await settle();
  return (await Promise.race([promise, Promise.resolve(undefined)])) === undefined;
}

describe("an executor without matching work", () => {
  test("is held, and answered when there is work", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    const held = a.ask(reserve(), 10_000);
    equal(await isPending(held), true);
    await a.reply(submit());
    equal(granted(await held), 1);
  });

  test("is answered with nothing when its time is up", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    const held = a.ask(reserve(), 2_000);
    await rig.clock.advance(1_900);
    equal(await isPending(held), true);
    await rig.clock.advance(300);
    equal(granted(await held), 0);
  });

  test("is granted nothing after it disconnected", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    const gone = new AbortController();
    const held = a.ask(reserve({ nonce: "gone" }), 10_000, gone.signal);
    await settle();
    gone.abort();
    await a.reply(submit());
    equal((await held).kind, "overloaded");
    equal((await a.grants()).length, 1, "the task is still there for others");
  });

  test("is tried only for work that it can do, in turn", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    const linux = ["n1", "n2"].map((nonce) => a.ask(reserve({ nonce, offers: ["os=linux"] }), 10_000));
    const mac = a.ask(reserve({ nonce: "n3", offers: ["os=mac"] }), 10_000);
    await settle();
    await a.reply(submit({ requires: ["os=linux"] }));
    equal(granted(await must(linux[0], "first in line")), 1);
    equal(await isPending(must(linux[1], "second")), true);
    equal(await isPending(mac), true);
    await a.reply(submit({ requires: ["os=mac"] }));
    equal(granted(await mac), 1);
    await a.reply(submit({ requires: ["os=linux"], tasks: 2 }));
    equal(granted(await must(linux[1], "second")), 1);
  });

  test("goes first when it is near the work, even if another waits longer", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    const held = Object.fromEntries(
      ["e1", "e2", "e3"].map((executor) => [executor, a.ask(reserve({ executor, offers: ["os=linux"] }), 10_000)]),
    );
    const near = a.ask(reserve({ executor: "near", offers: ["os=mac"] }), 10_000);
    await settle();
    await a.reply(submit({ affinity: "e3" }));
    equal(granted(await must(held["e3"], "near it")), 1);
    await a.reply(submit({ affinity: "near", requires: ["os=linux"] }));
    equal(granted(await must(held["e1"], "first in line of those who can")), 1);
    equal(await isPending(near), true);
    await a.reply(submit({ affinity: "e3", name: "gone" }));
    equal((await Promise.all([isPending(near), isPending(must(held["e2"], "e2"))])).filter(Boolean).length, 1);
  });

  test("a repeated request is one request with one answer", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    const twice = [a.ask(reserve({ nonce: "same" }), 10_000), a.ask(reserve({ nonce: "same" }), 10_000)];
    await settle();
    await a.reply(submit({ tasks: 2 }));
    const [one, two] = await Promise.all(twice);
    deepEqual(one, two);
    equal(granted(must(one, "answer")), 1);
  });

  test("their number is limited", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a", { host: { waitersMax: 1 } })).serving();
    void a.ask(reserve({ nonce: "n1" }), 10_000);
    equal((await a.ask(reserve({ nonce: "n2" }), 10_000)).kind, "overloaded");
  });

  test("they do not count against the request limit", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a", { host: { requestsMax: 2 } })).serving();
    for (const nonce of ["n1", "n2", "n3"]) {
      void a.ask(reserve({ nonce }), 10_000);
      await settle();
    }
    equal(a.node.status().shards[0]?.waiters, 3);
    equal((await a.ask(submit())).kind, "reply");
  });

  test("is redirected when the shard is given up", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    const held = a.ask(reserve(), 60_000);
    await settle();
    a.node.host.drop(0, "lease");
    equal((await held).kind, "not-owner");
  });
});
