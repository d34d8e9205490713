import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { describe, test } from "node:test";
import { must } from "#base/assert.ts";
import { settle } from "#base/testing/manual-clock.ts";
import type { Digest } from "#base/digest.ts";
import type { Grant } from "#kernel/model/model.ts";
import type { JobView, StageView } from "#kernel/read/query.ts";
import { commit, Rig, submit, template, type TestNode } from "#shard/testing/host.ts";
import { readRoot } from "./format.ts";
import { manifestEntries, manifestEntryAt, manifestLines, readManifest } from "./read.ts";

const stage = { needs: [], after: "success", failFast: false, mayFail: false, parallelMax: 0 } as const;
const arrays = (count: number) =>
  submit({
    stages: [
      { ...stage, name: "make", tasks: { template, array: { count, spec: "make one" } } },
      { ...stage, name: "take", needs: [0], tasks: { template, tasks: [{ key: "k", spec: "take" }] } },
    ],
  });

async function stagesOf(node: TestNode): Promise<readonly StageView[]> {
  const response = await node.query({ kind: "job", job: 1 });
  ok(response.kind === "answer", JSON.stringify(response));
  return (response.answer as JobView).stages;
}

const commitAll = async (node: TestNode, grants: readonly Grant[], payload = (key: string) => `made ${key}`) => {
  for (const grant of grants) await node.reply(commit(grant, { result: { payload: payload(grant.key), digests: [] } }));
};

async function manifestOf(rig: Rig, node: TestNode): Promise<Digest> {
  for (let i = 0; i < 50 && (await stagesOf(node))[0]?.manifest === undefined; i += 1) {
    await settle();
    await rig.clock.advance(100);
  }
  return must((await stagesOf(node))[0]?.manifest, `manifest: ${rig.reports.join("; ")}`);
}

describe("the shard's owner writes the manifest of a stage's results", () => {
  test("and then the stage is complete, and its consumers are given the digest", async () => {
    const rig = new Rig();
    const node = await (await rig.node()).serving();
    await node.reply(arrays(1_500));
    await commitAll(node, await node.grants(1_000));
    await commitAll(node, await node.grants(500));
    const digest = await manifestOf(rig, node);
    const root = await readManifest(rig.blobs, digest);
    deepEqual(
      root.sets.map(({ first, tasks, pages }) => ({ first, tasks, pages: pages.length })),
      [{ first: 0, tasks: 1_500, pages: 2 }],
    );
    const entries = await Array.fromAsync(manifestEntries(rig.blobs, digest));
    deepEqual(
      entries.map(({ key, payload }) => [key, payload]),
      Array.from({ length: 1_500 }, (_, i) => [String(i), `made ${i}`]),
    );
    equal((await manifestEntryAt(rig.blobs, digest, 1_234))?.payload, "made 1234");
    for (const [from, limit] of [
      [0, 2],
      [1_022, 4],
      [1_024, 1],
      [1_499, 10],
      [1_500, 10],
    ] as const)
      deepEqual(
        (await Array.fromAsync(manifestLines(rig.blobs, root, { from, limit }))).map(({ key }) => key),
        entries.slice(from, from + limit).map(({ key }) => key),
        `from ${from}`,
      );
    equal(await manifestEntryAt(rig.blobs, digest, 1_500), undefined);
    const [consumer] = await node.grants(1);
    deepEqual(consumer?.manifests, [{ stage: "make", generation: 1, digest }]);
  });

  test("a result that was lost is made again, and the rest is copied from the manifest before", async () => {
    const rig = new Rig();
    const node = await (await rig.node()).serving();
    await node.reply(arrays(1_100));
    await commitAll(node, await node.grants(1_000));
    await commitAll(node, await node.grants(100));
    const first = await manifestOf(rig, node);
    const lost = must(await manifestEntryAt(rig.blobs, first, 7), "entry");
    await node.reply({ kind: "invalidate", task: lost.task, generation: lost.generation, reason: "gone" });
    await commitAll(node, await node.grants(10), () => "made again");
    const second = await manifestOf(rig, node);
    const roots = [await readManifest(rig.blobs, first), await readManifest(rig.blobs, second)];
    deepEqual([roots[0]?.generation, roots[1]?.generation], [1, 2]);
    equal(roots[0]?.sets[0]?.pages[1], roots[1]?.sets[0]?.pages[1], "the page without a change is the same blob");
    const entries = await Array.fromAsync(manifestEntries(rig.blobs, second));
    deepEqual(entries[7], { ...lost, generation: 2, payload: "made again" });
    equal(entries[8]?.payload, "made 8");
  });

  test("a new owner writes what the one before it left", async () => {
    const rig = new Rig();
    const node = await (await rig.node("a")).serving();
    await node.reply(arrays(3));
    const grants = await node.grants(3);
    const write = rig.blobs.write.bind(rig.blobs);
    rig.blobs.write = () => Promise.reject(new Error("the store is away"));
    await commitAll(node, grants);
    await rig.clock.advance(1_000);
    equal((await stagesOf(node))[0]?.phase, "RUNNING");
    ok(rig.reports.some((line) => line.includes("write the manifest of make")));
    node.node.kill();
    rig.blobs.write = write;
    const next = await (await rig.node("b")).serving([0], 120_000);
    equal((await Array.fromAsync(manifestEntries(rig.blobs, await manifestOf(rig, next)))).length, 3);
    equal((await stagesOf(next))[0]?.phase, "COMPLETED");
  });

  test("what is no manifest is reported as such", async () => {
    await rejects(async () => readRoot(Buffer.from("{}")), /manifest/);
    await rejects(async () => readRoot(Buffer.from("x")), /manifest/);
  });
});
