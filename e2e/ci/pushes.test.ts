/** A push to a repository that a node keeps starts the workflows of what was pushed. */
import { deepEqual, equal, match, rejects } from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { startNode, type Running } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { CiNode } from "./ci-node.ts";
import { TestRepository } from "./repository.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";

const run = promisify(execFile);
const wait = { limitMs: 60_000, everyMs: 50 };
const workflow = `
on: { push: { branches: [main], paths-ignore: ["*.md"] } }
jobs:
  grind:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - run: echo "ground $(cat corn.txt) at $GITHUB_REF_NAME for $GITHUB_ACTOR"
`;

describe("pushes to a node", { timeout: 60_000 }, () => {
  let folder: string;
  let node: Running;
  let ci: CiNode;
  let repository: TestRepository;
  let origin: string;

  const push = async (...args: readonly string[]): Promise<string> => {
    const basic = Buffer.from(`x-access-token:${node.owner}`).toString("base64");
    const words = ["-c", `http.extraHeader=authorization: basic ${basic}`, "push", `${origin}/mill/flour.git`, ...args];
    const env = { ...process.env, GIT_TERMINAL_PROMPT: "0" };
    return (await run("git", words, { cwd: repository.folder, env })).stderr;
  };
  const runs = async (): Promise<readonly string[]> =>
    (await ci.list({ repository: "mill/flour" })).map((one) => one.run);

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "millrace-ci-pushes-"));
    repository = new TestRepository({ ".github/workflows/mill.yml": workflow, "corn.txt": "wheat" });
    const config = Config.parse({
      edge: { listen: ["127.0.0.1:0"] },
      cluster: { shards: 2 },
      node: { stopWithin: "100ms" },
    });
    node = await startNode(config, dataFolder(folder), { log: () => {} });
    origin = `http://127.0.0.1:${node.edgePorts[0]}`;
    ci = new CiNode(origin, () => node.owner);
    await ci.register("mill/flour");
  });
  after(async () => {
    await node.stop();
    repository[Symbol.dispose]();
    clearAway(folder);
  });

  test("a push runs the workflow of its commit; the same commits again run nothing", async () => {
    const sha = repository.git("rev-parse", "HEAD").trim();
    await push("main");
    await until("a run started", async () => (await runs()).length > 0, wait);
    const [first = ""] = await runs();
    const shown = await ci.ended(first);
    deepEqual(
      [shown.conclusion, shown.event, shown.ref, shown.sha],
      ["success", "push", "refs/heads/main", sha],
      JSON.stringify(shown),
    );
    match(await ci.log(first, "grind"), /\| ground wheat at main for /);
    match(await push("main"), /up-to-date/);

    // Events come in order: what the same push would have started is there before what comes behind it.
    await push("main:refs/heads/topic");
    repository.commit({ "README.md": "not of the workflow" });
    await push("main");
    repository.commit({ "corn.txt": "rye" });
    await push("main");
    await until("the next run started", async () => (await runs()).length > 1, wait);
    const [second = "", ...others] = await runs();
    deepEqual(others, [first], "neither another branch nor a file that is not of the workflow runs it");
    equal((await ci.ended(second)).conclusion, "success");
    match(await ci.log(second, "grind"), /\| ground rye at main/);
  });

  test("workflows that cannot start stop neither their neighbours nor the pushes behind them", async () => {
    const before = await runs();
    const jobs = "jobs: { a: { runs-on: ubuntu-latest, steps: [{ run: echo }] } }";
    repository.commit({
      ".github/workflows/bad-group.yml": `on: push\nconcurrency: "\${{ fromJSON(github.ref) }}"\n${jobs}\n`,
      ".github/workflows/bad-name.yml": `on: push\nrun-name: "\${{ fromJSON(github.ref) }}"\n${jobs}\n`,
      ".github/workflows/bad-text.yml": "on: push\njobs: [",
      "corn.txt": "oats",
    });
    await push("main");
    await until("the good one started", async () => (await runs()).length > before.length, wait);
    equal((await runs()).length, before.length + 1);
    await push("--delete", "topic");
    repository.commit({ "corn.txt": "barley" });
    await push("main");
    await until("the next one started", async () => (await runs()).length > before.length + 1, wait);
    const [last = ""] = await runs();
    equal((await ci.ended(last)).conclusion, "success");
    match(await ci.log(last, "grind"), /ground barley/);
  });

  test("a name is kept once", async () => {
    await rejects(ci.register("mill/flour"), /there is one with this name/);
  });
});
