/** Workflows and actions of other repositories, on a node. */
import { deepEqual, equal, match, rejects } from "node:assert/strict";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { startNode, type Running } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { clearAway } from "#testing/clear-away.ts";
import { CiNode, type RunShown } from "./ci-node.ts";
import { TestRepository } from "./repository.ts";

const caller = `
on: workflow_dispatch
jobs:
  near:
    strategy: { matrix: { stone: [coarse, fine] } }
    uses: ./.github/workflows/grind.yml
    with: { stone: "\${{ matrix.stone }}" }
  far:
    needs: near
    uses: acme/shared/.github/workflows/sell.yml@v1
    with: { flour: "\${{ needs.near.outputs.flour }}" }
    secrets: { price: "\${{ secrets.GITHUB_TOKEN }}" }
  last:
    needs: [near, far]
    if: always()
    runs-on: ubuntu-latest
    steps: [{ run: 'echo "sold \${{ needs.far.outputs.sold }} and \${{ needs.far.result }}"' }]
`;
const grind = `
on:
  workflow_call:
    inputs: { stone: { type: string, required: true } }
    outputs: { flour: { value: "\${{ jobs.mill.outputs.flour }}" } }
jobs:
  mill:
    runs-on: ubuntu-latest
    outputs: { flour: "\${{ steps.a.outputs.flour }}" }
    steps: [{ id: a, run: 'echo "flour=\${{ inputs.stone }}" >> "$GITHUB_OUTPUT"; echo "ground \${{ inputs.stone }}"' }]
`;
const sell = `
on:
  workflow_call:
    inputs: { flour: { type: string } }
    secrets: { price: { required: true } }
    outputs: { sold: { value: "\${{ jobs.shop.outputs.sold }}" } }
jobs:
  shop: { uses: ./.github/workflows/shop.yml, with: { flour: "\${{ inputs.flour }}" }, secrets: inherit }
`;
const shop = `
on:
  workflow_call:
    inputs: { flour: { type: string } }
    outputs: { sold: { value: "\${{ jobs.till.outputs.sold }}" } }
jobs:
  till:
    runs-on: ubuntu-latest
    outputs: { sold: "\${{ steps.a.outputs.sold }}" }
    steps:
      - { id: a, run: 'echo "sold=\${{ inputs.flour }} flour" >> "$GITHUB_OUTPUT"' }
      - run: |
          test -n "\${{ secrets.price }}" && test -z "\${{ secrets.other }}"
          echo "price \${{ secrets.price }}"
`;

const using = `
on: workflow_dispatch
jobs:
  a:
    runs-on: ubuntu-latest
    outputs: { made: "\${{ steps.tool.outputs.made }}" }
    steps:
      - uses: actions/checkout@v4
      - { id: tool, uses: acme/shared/tools/wrap@v1, with: { who: ada } }
      - { run: 'echo "made \${{ steps.tool.outputs.made }}"' }
  b: { needs: a, if: always(), runs-on: ubuntu-latest, steps: [{ uses: nobody/nothing@v1 }] }
`;
const wrap = `
name: Wrap
inputs: { who: { required: true } }
outputs: { made: { value: "\${{ steps.s.outputs.stamp }}" } }
runs:
  using: composite
  steps:
    - { id: s, uses: octo/stamp@main, with: { who: "\${{ inputs.who }}" } }
`;
const stamp = `
name: Stamp
inputs: { who: { default: nobody } }
outputs: { stamp: {} }
runs: { using: node20, pre: pre.js, main: main.js, post: post.js }
`;
const main = `
const { appendFileSync } = require("node:fs");
appendFileSync(process.env.GITHUB_OUTPUT, "stamp=" + process.env.INPUT_WHO.toUpperCase() + "\\n");
`;

const told = ({ jobs }: RunShown): readonly string[] => jobs.map(({ name, conclusion }) => `${name}: ${conclusion}`);

describe("calls of other workflows on a node", { timeout: 120_000 }, () => {
  let folder: string;
  let node: Running;
  let ci: CiNode;
  let own: TestRepository;
  let shared: TestRepository;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "millrace-ci-calls-"));
    own = new TestRepository({
      ".github/workflows/caller.yml": caller,
      ".github/workflows/grind.yml": grind,
      ".github/workflows/using.yml": using,
      ".github/workflows/lost.yml":
        "on: workflow_dispatch\njobs: { a: { uses: acme/nowhere/.github/workflows/x.yml@v1 } }\n",
    });
    shared = new TestRepository({
      ".github/workflows/sell.yml": sell,
      ".github/workflows/shop.yml": shop,
      "tools/wrap/action.yml": wrap,
    });
    shared.git("tag", "v1");
    using action = new TestRepository({
      "action.yml": stamp,
      "main.js": main,
      "pre.js": 'console.log("ready to stamp");',
      "post.js": 'console.log("stamp put away");',
    });
    action.git("clone", "--quiet", "--bare", action.folder, join(folder, "server/octo/stamp"));
    const config = Config.parse({
      journal: { kind: "memory" },
      edge: { listen: ["127.0.0.1:0"] },
      cluster: { shards: 1 },
      worker: { slots: 4 },
      ci: { actionServer: `file://${folder}/server` },
    });
    node = await startNode(config, dataFolder(join(folder, "data")), { log: () => {} });
    ci = new CiNode(`http://127.0.0.1:${node.edgePorts[0]}`, () => node.owner);
    await ci.register("acme/mill", own.folder);
    await ci.register("acme/shared", shared.folder);
  });

  after(async () => {
    await node.stop();
    own[Symbol.dispose]();
    shared[Symbol.dispose]();
    clearAway(folder);
  });

  test("CI-61: inputs, secrets and outputs pass through two repositories; one call is run again", async () => {
    const run = await ci.dispatch("acme/mill", "caller.yml");
    const ended = await ci.ended(run);
    deepEqual(told(ended), [
      "near (coarse) / mill: success",
      "near (fine) / mill: success",
      "far / shop / till: success",
      "last: success",
    ]);
    match(await ci.log(run, "last"), /sold (coarse|fine) flour and success/);
    match(await ci.log(run, "far/shop/till"), /price \*\*\*/);
    deepEqual(ended.jobs.at(-1)?.needs, ["near/mill", "far/shop/till"]);
    const again = await ci.ended(await ci.rerun(run, { job: "far" }));
    equal(again.conclusion, "success");
    deepEqual(
      again.jobs.map(({ attempts }) => attempts),
      [0, 0, 1, 1],
      "what the call did not need was taken over",
    );
  });

  test("CI-13, CI-64, CI-71: actions of others are found, each as one commit", async () => {
    const run = await ci.dispatch("acme/mill", "using.yml");
    const { jobs, conclusion } = await ci.ended(run);
    equal(conclusion, "failure");
    const log = await ci.log(run, "a");
    match(
      log,
      new RegExp(`Download action repository 'acme/shared@v1' \\(SHA:${shared.git("rev-parse", "v1").trim()}\\)`),
    );
    match(log, /Download action repository 'octo\/stamp@main' \(SHA:[0-9a-f]{40}\)/);
    match(log, /made ADA[\s\S]*stamp put away/);
    deepEqual(
      jobs.map((one) => one.conclusion),
      ["success", "failure"],
    );
    match(await ci.log(run, "b"), /nobody\/nothing@v1 is not at hand: .*millrace ci add nobody\/nothing/);
  });

  test("CI-61: a repository that is not registered is said, with what to do", async () => {
    await rejects(ci.dispatch("acme/mill", "lost.yml"), /millrace ci add acme\/nowhere/);
  });
});
