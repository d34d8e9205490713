/** A real Bazel and outputs that are links, actions with many inputs, outputs that are large: twice. */
import { deepEqual, equal } from "node:assert/strict";
import { createHash } from "node:crypto";
import { createReadStream, readlinkSync, statSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { bazelMissing } from "./bazel.ts";
import { RemoteBuild } from "./remote-build.ts";
import { inputsCount, largeBytes } from "./trials.ts";

const links = ["//links:through_links", "//links:linked"];
const large = ["//large:large", "//large:large_sum"];

describe("Bazel executes remotely what is large", { skip: bazelMissing() ?? false, timeout: 280_000 }, () => {
  let remote: RemoteBuild;
  before(async () => (remote = await RemoteBuild.open()));
  after(() => remote[Symbol.asyncDispose]());

  test("links among outputs, and outputs through links", async () => {
    await remote.build(...links);
    equal(remote.made("links/through.txt"), `grain ${remote.salt}\n`.repeat(3));
    const targets = ["near", "deep/back"].map((path) => readlinkSync(remote.at(`links/linked/${path}`)));
    deepEqual(targets, ["deep/real", "../near"]);
  });

  test(`an action of ${inputsCount} inputs`, async () => {
    await remote.build("//large:of_many");
    const lines = remote.made("large/of_many.txt").trimEnd().split("\n");
    deepEqual([lines.length, lines.at(-1)], [inputsCount, `${inputsCount - 1} ${remote.salt}`]);
  });

  test(`an output of ${largeBytes / 1e6} MB comes back as it was made, and goes in again`, async () => {
    await remote.build(...large);
    const file = remote.at("large/large.bin");
    equal(statSync(file).size, largeBytes);
    const hash = createHash("sha256");
    for await (const part of createReadStream(file)) hash.update(part as Buffer);
    equal(hash.digest("hex"), remote.made("large/large.sum").trim());
  });

  test("and all of it a second time, from the cache alone", async () => {
    await remote.bazel.clean();
    const { processes } = await remote.build(...links, "//large:of_many", ...large);
    deepEqual([processes.get("remote") ?? 0, processes.get("remote cache hit")], [0, 5]);
    equal(remote.made("links/through.txt"), `grain ${remote.salt}\n`.repeat(3));
    equal(statSync(remote.at("large/large.bin")).size, largeBytes);
  });
});
