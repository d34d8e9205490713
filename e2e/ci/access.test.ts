/** A step of a job on a node calls the node as any task does; what it prints of its token is masked. */
import { equal, match, ok } from "node:assert/strict";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { startNode } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { clearAway } from "#testing/clear-away.ts";
import { CiNode } from "./ci-node.ts";
import { TestRepository } from "./repository.ts";

const put = `const token = require("fs").readFileSync(process.env.MILLRACE_TOKEN_FILE, "utf8");
  fetch(process.env.MILLRACE_SERVER + "/v1/task/artifacts/x.txt", { method: "PUT", body: "flour",
  headers: { authorization: "Bearer " + token } }).then((answer) => console.log(answer.status))`;
const workflow = `
on: workflow_dispatch
jobs:
  mill:
    runs-on: ubuntu-latest
    steps:
      - run: '"$NODE" -e "$PUT"'
        env: { NODE: ${JSON.stringify(process.execPath)}, PUT: ${JSON.stringify(put)} }
      - run: echo "my token is $(cat "$MILLRACE_TOKEN_FILE")"
`;

test("a step keeps an artifact of its run, and its token stays out of the log", { timeout: 60_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "millrace-ci-access-"));
  using repository = new TestRepository({ ".github/workflows/mill.yml": workflow });
  const settings = { edge: { listen: ["127.0.0.1:0"] }, cluster: { shards: 1 }, node: { stopWithin: "100ms" } };
  const node = await startNode(Config.parse(settings), dataFolder(folder), { log: () => {} });
  try {
    const ci = new CiNode(`http://127.0.0.1:${node.edgePorts[0]}`, () => node.owner);
    await ci.register("mill/flour", repository.folder);
    const run = await ci.dispatch("mill/flour", "mill");
    const { conclusion } = await ci.ended(run);
    const log = await ci.log(run, "mill");
    equal(conclusion, "success", log);
    match(log, /\b200\b/);
    match(log, /my token is \*\*\*/);
    ok(!log.includes("eyJ"));
    equal(await (await ci.fetch(`/v1/jobs/${run}/artifacts/x.txt`)).text(), "flour");
  } finally {
    await node.stop();
    clearAway(folder);
  }
});
