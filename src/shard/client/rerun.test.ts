import { deepEqual, equal, rejects } from "node:assert/strict";
import { describe, test } from "node:test";
import { must } from "#base/assert.ts";
import type { Submit } from "#kernel/model/command.ts";
import { commit, Rig, submit } from "#shard/testing/host.ts";
import { RejectedError } from "#shard/work/rejected.ts";
import { rerunOf, submitAgain } from "./rerun.ts";

describe("a re-run from history", () => {
  test("submits what was submitted, and takes over the results that it may", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    const tags = [{ name: "repo", value: "mill" }];
    const order = submit({ tasks: 2, tracked: true, tags, series: "ci", requestKey: "k", spec: "all" });
    const { job } = await a.reply<{ job: number }>(order);
    const [first, second] = await a.grants(2);
    await a.reply(commit(must(first, "grant"), { result: { payload: "made", digests: [] } }));
    const { task, token } = must(second, "grant");
    await a.reply({ kind: "fail", executor: "e1", task, token, reason: "user-failure", message: "no" });
    await rig.clock.advance(500);
    const history = must(await rig.store.connect().history.job(0, job), "history");
    const plain = await rerunOf("j0-1", history, {}, undefined);
    const again = [
      { name: "repo", value: "mill" },
      { name: "rerun-of", value: "j0-1" },
    ];
    deepEqual([plain.stages, plain.spec, plain.series], [order.stages, "all", "ci"]);
    deepEqual([plain.tags, plain.requestKey, plain.reuse], [again, undefined, undefined]);
    const reusing = await rerunOf("j0-1", history, { reuse: true, requestKey: "again" }, undefined);
    deepEqual(
      reusing.reuse?.map(({ stage, key, result }) => [stage, key, result.payload]),
      [["s", "k0", "made"]],
    );
    const { number } = await a.reply<{ number: number }>(reusing);
    equal(number, 2);
    deepEqual(
      (await a.grants(5)).map(({ key }) => key),
      ["k1"],
      "the other ran already",
    );
    a.node.kill();
  });

  test("says why a job cannot be repeated", async () => {
    const rig = new Rig();
    const a = await (await rig.node()).serving();
    const { job } = await a.reply<{ job: number }>(submit());
    await a.reply(commit(must((await a.grants())[0], "grant")));
    await rig.clock.advance(500);
    const history = must(await rig.store.connect().history.job(0, job), "history");
    await rejects(rerunOf("j0-1", history, {}, undefined), /its submission was not kept/);
    a.node.kill();
  });

  test("leaves out results whose blobs are gone", async () => {
    const reuse = ["a", "b"].map((key) => ({
      stage: "s",
      key,
      spec: "",
      result: { payload: "", digests: [`${key.repeat(64)}/1`] },
    }));
    const sent: (readonly string[])[] = [];
    const send = async ({ reuse: given = [] }: Submit): Promise<string> => {
      sent.push(given.map(({ key }) => key));
      const digest = given.find(({ key }) => key === "a")?.result.digests[0];
      if (digest !== undefined) throw new RejectedError("submit", 0, { kind: "evidence-missing", digest });
      return "done";
    };
    equal(await submitAgain({ ...submit(), reuse }, send), "done");
    deepEqual(sent, [["a", "b"], ["b"]]);
  });
});
