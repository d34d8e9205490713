/** Jobs on runners that only reach out: a matrix with checkout and artifacts, and a runner that is killed meanwhile. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createWorkerToken } from "#api/workers.ts";
import { callEndpoint } from "#http/client.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { readOwnerToken } from "#app/node/owner-token.ts";
import { RegisteredProcess } from "#e2e/elsewhere/worker-process.ts";
import { NodeProcess } from "#e2e/store/node-process.ts";
import { CiNode } from "./ci-node.ts";
import { TestRepository } from "./repository.ts";

const skip = process.platform === "linux" ? false : "needs linux: jobs run in its process groups";
const lines = 60;
const workflow = `
on: workflow_dispatch
jobs:
  test:
    strategy: { matrix: { part: [a, b] } }
    runs-on: [self-hosted, far]
    steps:
      - uses: actions/checkout@v4
      - uses: ./.github/actions/greet
        with: { who: "\${{ matrix.part }}" }
      - run: millrace artifact put "\${{ matrix.part }}.txt" words.txt
  long:
    needs: test
    runs-on: [self-hosted, far]
    steps:
      - run: echo "began with \${{ secrets.GITHUB_TOKEN != '' }}" | tee first.txt
      - run: echo "kept=yes" >> "$GITHUB_ENV"
      - run: for i in $(seq 1 ${lines}); do echo "line $i"; sleep 0.1; done
      - run: echo "kept $kept, $(cat first.txt), $(cat words.txt)"
`;
const action = `
name: greet
inputs: { who: { required: true } }
runs: { using: composite, steps: [{ shell: bash, run: 'echo "hello \${{ inputs.who }}"' }] }
`;

test("a job whose runner is killed goes on at another machine", { skip, timeout: 240_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "millrace-ci-runners-"));
  using repository = new TestRepository({
    ".github/workflows/far.yml": workflow,
    ".github/actions/greet/action.yml": action,
    "words.txt": "grain\n",
  });
  // The node itself runs no jobs: it plans, and its labels do not fit.
  const node = await NodeProcess.open(folder, { worker: { slots: 2 }, ci: { labels: ["near"] } });
  const ci = new CiNode(`http://${node.address}`, () => readOwnerToken(dataFolder(folder)) ?? "");
  const body = { labels: ["door=ci", "isolation=sandbox", "runner=*"], uses: 2 };
  const { token, tenant } = await callEndpoint(ci.fetch, createWorkerToken, { body });
  const runner = (name: string): RegisteredProcess => {
    const data = mkdtempSync(join(tmpdir(), `millrace-runner-${name}-`));
    const args = ["--server", `http://${node.address}`, "--data", data, "--labels", "far"];
    return new RegisteredProcess(token, args, "runner");
  };
  await using first = runner("first");
  await using second = runner("second");
  try {
    ok(tenant !== undefined);
    await ci.register("mill/flour", repository.folder);
    await first.start().isUp();
    const run = await ci.dispatch("mill/flour", "far");
    const wait = { limitMs: 90_000, everyMs: 50 };
    const log = async (): Promise<string> => await ci.log(run, "long").catch(() => "");
    await until(`it counts; the runner said ${first.said}`, async () => (await log()).includes("| line 5\n"), wait);
    await second.start().isUp();
    await first.end("SIGKILL");
    const shown = await ci.ended(run, 120_000);
    deepEqual(
      shown.jobs.map(({ id, conclusion }) => `${id} ${conclusion}`),
      ["test success", "test success", "long success"],
    );
    const text = await log();
    const said = text.split("\n").flatMap((line) => /\| (line \d+)$/.exec(line)?.[1] ?? []);
    ok(text.includes("| kept yes, began with true, grain\n"), text);
    equal(said.at(-1), `line ${lines}`);
    equal(text.split("| began with true\n").length, 2, "the first step ran once");
  } finally {
    await node[Symbol.asyncDispose]();
    clearAway(folder);
  }
});
