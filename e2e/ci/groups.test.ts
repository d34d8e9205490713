/** Concurrency groups of runs and of jobs, labels of cells, and large files and outputs, on a node. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { startNode, type Running } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { validateWorkflow } from "#doors/ci/endpoints.ts";
import { CiNode } from "./ci-node.ts";
import { TestRepository } from "./repository.ts";
import { callEndpoint } from "#http/client.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";

const wait = { limitMs: 60_000, everyMs: 50 };
const inputs = "on: { workflow_dispatch: { inputs: { wait: { type: boolean }, eager: { type: boolean } } } }";
const holds = `echo holding; if [ "\${{ inputs.wait }}" = true ]; then exec sleep 600; fi`;
const job = `runs-on: ubuntu-latest, steps: [{ run: '${holds}' }]`;
const group = (name: string): string => `{ group: ${name}, cancel-in-progress: "\${{ inputs.eager }}" }`;
const ofRun = `${inputs}\nconcurrency: ${group("Run")}\njobs: { a: { ${job} } }\n`;
const ofJob = `${inputs}\njobs: { a: { concurrency: ${group("job")}, ${job} } }\n`;
const labels = `
on: workflow_dispatch
jobs:
  a:
    strategy: { matrix: { on: [ubuntu-latest, special, nobody-has-it] } }
    runs-on: \${{ matrix.on }}
    steps: [{ run: 'echo "on \${{ matrix.on }}"' }]
`;
const long = 500 * 1024;
const large = `
on: workflow_dispatch
jobs:
  a:
    runs-on: ubuntu-latest
    outputs: { text: "\${{ steps.s.outputs.text }}" }
    steps:
      - id: s
        run: printf 'text=%s\\n' "$(head -c ${long} /dev/zero | tr '\\0' x)" >> "$GITHUB_OUTPUT"
  b:
    needs: a
    runs-on: ubuntu-latest
    if: startsWith(needs.a.outputs.text, 'xxx')
    steps:
      - shell: bash
        run: echo "\${{ format('{0} {1}', startsWith(needs.a.outputs.text, 'xxxx'), 'came') }}"
# ${"-".repeat(1024 * 1024 - 800)}
`;

describe("groups, labels and large files on a node", { timeout: 90_000 }, () => {
  let folder: string;
  let node: Running;
  let ci: CiNode;
  let repository: TestRepository;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "millrace-ci-groups-"));
    repository = new TestRepository({
      ".github/workflows/of-run.yml": ofRun,
      ".github/workflows/of-job.yml": ofJob,
      ".github/workflows/labels.yml": labels,
    });
    const config = Config.parse({
      edge: { listen: ["127.0.0.1:0"] },
      cluster: { shards: 1 },
      node: { stopWithin: "100ms" },
      worker: { slots: 8 },
      ci: { labels: ["ubuntu-latest", "special"] },
    });
    node = await startNode(config, dataFolder(folder), { log: () => {} });
    ci = new CiNode(`http://127.0.0.1:${node.edgePorts[0]}`, () => node.owner);
    await ci.register("mill/flour", repository.folder);
  });
  after(async () => {
    await node.stop();
    repository[Symbol.dispose]();
    clearAway(folder);
  });

  const start = async (workflow: string, given: Record<string, string> = {}): Promise<string> =>
    await ci.dispatch("mill/flour", workflow, { inputs: given });
  const holding = async (run: string): Promise<void> =>
    await until("it holds", async () => (await ci.log(run, "a").catch(() => "")).includes("| holding"), wait);

  for (const workflow of ["of-run", "of-job"])
    test(`CI-60: a group ${workflow}: one runs and the newest waits; cancel-in-progress ends both`, async () => {
      const queued = async (run: string): Promise<void> => {
        if (workflow === "of-job")
          await until("its job waits", async () => (await ci.show(run)).jobs[0]?.job !== undefined, wait);
      };
      const first = await start(workflow, { wait: "true" });
      await holding(first);
      const second = await start(workflow);
      await queued(second);
      const third = await start(workflow);
      equal((await ci.ended(second)).conclusion, "cancelled");
      await queued(third);
      equal((await ci.show(first)).status, "in_progress");
      ok((await ci.show(third)).status !== "completed", "it waits");
      const eager = await start(workflow, { eager: "true" });
      equal((await ci.ended(third)).conclusion, "cancelled");
      equal((await ci.ended(first)).conclusion, "cancelled");
      equal((await ci.ended(eager)).conclusion, "success");
      const next = await start(workflow);
      equal((await ci.ended(next)).conclusion, "success", "the group is free again");
    });

  test("CI-72: each cell runs where its own label is; one that no runner has waits alone", async () => {
    const run = await ci.dispatch("mill/flour", "labels");
    const ends = async () => (await ci.show(run)).jobs.map(({ name, conclusion }) => `${name} ${conclusion}`);
    const wanted = ["a (ubuntu-latest) success", "a (special) success", "a (nobody-has-it) undefined"];
    await until(
      "two have ended",
      async () => (await ends()).filter((end) => end.endsWith("success")).length === 2,
      wait,
    );
    deepEqual(await ends(), wanted);
    match(await ci.log(run, "a (special)"), /\| on special\n/);
    await ci.cancel(run);
    equal((await ci.ended(run)).conclusion, "cancelled");
  });

  test("a file of almost 1 MiB, and an output of 500 KiB that another job reads", async () => {
    ok(large.length > 1024 * 1024 - 1_000 && large.length <= 1024 * 1024);
    repository.commit({ ".github/workflows/large.yml": large });
    const run = await ci.dispatch("mill/flour", "large");
    const shown = await ci.ended(run);
    equal(shown.conclusion, "success", JSON.stringify(shown).slice(0, 5_000));
    match(await ci.log(run, "b"), /\| true came\n/);
  });

  test("a workflow's text is checked, with line and column", async () => {
    const check = async (text: string) => await callEndpoint(ci.fetch, validateWorkflow, { body: { text } });
    deepEqual(await check(ofRun), { valid: true, problems: [], warnings: [] });
    const far = await check("on: push\njobs: { a: { uses: acme/none/.github/workflows/x.yml@v1 } }");
    deepEqual([far.valid, far.warnings.map(({ rule }) => rule)], [true, ["unpinned-action", "unknown-repository"]]);
    const wrong = await check("on: push\njobs:\n  a:\n    runs-on: x\n    stepz: []\n");
    equal(wrong.valid, false);
    deepEqual([wrong.problems[0]?.line, wrong.problems[0]?.column], [5, 5], JSON.stringify(wrong));
    match(wrong.problems[0]?.message ?? "", /stepz/);
    equal((await check("on: push\njobs: [")).valid, false);
    equal((await check(`${ofRun}# ${"x".repeat(1024 * 1024)}`)).valid, false);
  });
});
