/** A real Bazel with outputs that are links, actions with many inputs, and large outputs: twice. */
import { deepEqual } from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { bazelMissing } from "./bazel.ts";
import { large, largeIsWhole, links, linksLead, manyWereRead, ofMany } from "./cases.ts";
import { RemoteBuild } from "./remote-build.ts";
import { inputsCount, largeBytes } from "./trials.ts";

describe("Bazel executes remotely what is large", { skip: bazelMissing() ?? false, timeout: 280_000 }, () => {
  let remote: RemoteBuild;
  before(async () => (remote = await RemoteBuild.open()));
  after(() => remote[Symbol.asyncDispose]());

  test("links among outputs, and outputs through links", async () => {
    await remote.build(...links);
    linksLead(remote);
  });

  test(`an action of ${inputsCount} inputs`, async () => {
    await remote.build(ofMany);
    manyWereRead(remote);
  });

  test(`an output of ${largeBytes / 1e6} MB comes back unchanged, and can be an input again`, async () => {
    await remote.build(...large);
    await largeIsWhole(remote);
  });

  test("and all of it a second time, from the cache alone", async () => {
    await remote.bazel.clean();
    const { processes } = await remote.build(...links, ofMany, ...large);
    deepEqual([processes.get("remote") ?? 0, processes.get("remote cache hit")], [0, 5]);
    linksLead(remote);
    await largeIsWhole(remote);
  });
});
