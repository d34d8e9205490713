import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import { must } from "#base/assert.ts";
import type { JobView } from "#kernel/read/query.ts";
import { commit, reserve, Rig, submit } from "./testing/host.ts";

describe("a node", () => {
  test("owns a shard, accepts a job, grants it, commits it, and finds it again after a restart", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a")).serving();
    const { job } = await a.reply<{ job: number }>(submit());
    const grant = must((await a.grants())[0], "grant");
    equal(grant.job, job);
    a.node.kill();

    const b = await (await rig.node("a")).serving();
    const { grants } = await b.reply<{ grants: unknown[] }>(reserve({ nonce: "other" }));
    deepEqual(grants, [], "the claim survived its owner");
    deepEqual(await b.reply(commit(grant)), { committed: true, generation: 1 });
    const response = await b.query({ kind: "job", job });
    equal(response.kind === "answer" && (response.answer as JobView).phase, "SUCCEEDED");
    deepEqual(rig.reports, []);
    b.node.kill();
  });

  test("after stop it has handed everything back and nothing of it is running", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a")).serving();
    await a.reply(submit());
    const stopped = a.node.stop();
    await rig.clock.advance(100);
    await stopped;
    equal(a.node.status().state, "ended");
    deepEqual(a.node.status().shards, []);
    equal(rig.clock.pending, 0, "no timer is left");
    equal((await rig.store.connect().ownerships())[0]?.owner, undefined);
  });

  test("after kill it answers and does nothing more, whatever was in progress", async () => {
    const rig = new Rig();
    const a = await (await rig.node("a")).serving();
    a.journal.fail("append", "late");
    let answered = false;
    void a.ask(submit()).then(() => (answered = true));
    await rig.clock.advance(10);
    a.node.kill();
    const before = [...a.journal.calls.values()].reduce((sum, count) => sum + count, 0);
    a.journal.deliver();
    await rig.clock.advance(60_000);
    const after = [...a.journal.calls.values()].reduce((sum, count) => sum + count, 0);
    equal(after, before);
    equal(answered, false);
    equal(rig.clock.pending, 0);
  });
});
