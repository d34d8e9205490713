import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import { must } from "#base/assert.ts";
import type { JobView } from "#kernel/query.ts";
import { commit, reserve, Rig, submit } from "./host-rig.ts";

describe("a node", () => {
  test("owns a shard, takes a job in, grants it, commits it, and finds it again after a restart", async () => {
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
});
