/** Many who look at one log while it grows, and one who does not read. */
import { deepEqual, equal } from "node:assert/strict";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { startNode, type Running } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";
import { CiNode } from "./ci-node.ts";
import { TestRepository } from "./repository.ts";

const lines = 3_000;
const prints = `
on: workflow_dispatch
jobs:
  a:
    runs-on: ubuntu-latest
    steps: [{ run: 'for i in $(seq ${lines}); do echo "line $i"; [ $((i % 500)) -ne 0 ] || sleep 0.2; done' }]
`;

describe("viewers of a log on a node", { timeout: 90_000 }, () => {
  let folder: string;
  let node: Running;
  let ci: CiNode;
  let repository: TestRepository;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "millrace-ci-viewers-"));
    repository = new TestRepository({ ".github/workflows/prints.yml": prints });
    const config = Config.parse({ edge: { listen: ["127.0.0.1:0"] }, worker: { slots: 1 } });
    node = await startNode(config, dataFolder(join(folder, "data")), { log: () => {} });
    ci = new CiNode(`http://127.0.0.1:${node.edgePorts[0]}`, () => node.owner);
    await ci.register("mill/flour", repository.folder);
  });
  after(async () => {
    await node?.stop();
    repository?.[Symbol.dispose]();
    clearAway(folder);
  });

  test("a hundred see every line once, in order, beside one that never reads", async () => {
    const run = await ci.dispatch("mill/flour", "prints");
    await until("its job is planned", async () => (await ci.show(run)).jobs[0]?.job !== undefined, { everyMs: 20 });
    const leave = new AbortController();
    const silent = await ci.fetch(`/v1/runs/${run}/jobs/a/logs?follow=true`, { signal: leave.signal });
    equal(silent.status, 200);
    const seen = await Promise.all(Array.from({ length: 100 }, () => ci.follow(run, "a")));
    leave.abort();
    const wanted = Array.from({ length: lines }, (_, n) => `line ${n + 1}`);
    for (const { texts } of seen)
      deepEqual(
        texts.filter((text) => text.startsWith("line ")),
        wanted,
      );
  });
});
