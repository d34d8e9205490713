/** A node is killed while it runs a job, and started again: the run ends right, once, with a whole log. */
import { deepEqual, equal } from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { readOwnerToken } from "#app/node/owner-token.ts";
import { NodeProcess } from "#e2e/store/node-process.ts";
import { CiNode } from "#e2e/ci/ci-node.ts";
import { TestRepository } from "#e2e/ci/repository.ts";

const skip = process.platform === "linux" ? false : "needs linux: jobs run in its process groups";
const lines = 40;
const workflow = `
on: workflow_dispatch
jobs:
  count:
    runs-on: ubuntu-latest
    outputs: { last: "\${{ steps.c.outputs.last }}" }
    steps:
      - id: c
        run: |
          for i in $(seq 1 ${lines}); do echo "line $i"; sleep 0.1; done
          echo "last=$i" >> "$GITHUB_OUTPUT"
  tell: { needs: count, runs-on: ubuntu-latest, steps: [{ run: 'echo "counted to \${{ needs.count.outputs.last }}"' }] }
`;

test("kill -9 of the node in the middle of a step", { skip, timeout: 180_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "millrace-ci-kill-"));
  using repository = new TestRepository({ ".github/workflows/count.yml": workflow });
  const node = await NodeProcess.open(folder, { worker: { slots: 2 } });
  const ci = new CiNode(`http://${node.address}`, () => readOwnerToken(dataFolder(folder)) ?? "");
  try {
    await ci.register("mill/flour", repository.folder);
    const run = await ci.dispatch("mill/flour", "count");
    const wait = { limitMs: 60_000, everyMs: 50 };
    await until("it counts", async () => (await ci.log(run, "count").catch(() => "")).includes("| line 5\n"), wait);
    await node.kill();
    await node.start();
    const shown = await ci.ended(run, 90_000);
    deepEqual(
      shown.jobs.map(({ id, conclusion, attempts }) => `${id} ${conclusion} ${attempts}`),
      ["count success 2", "tell success 1"],
    );
    equal(shown.conclusion, "success");
    const texts = (await ci.log(run, "count")).split("\n").flatMap((line) => /\| (line \d+)$/.exec(line)?.[1] ?? []);
    deepEqual(
      texts,
      Array.from({ length: lines }, (_, i) => `line ${i + 1}`),
      "no gap and no repeated line",
    );
    equal((await ci.log(run, "tell")).includes(`| counted to ${lines}\n`), true);
  } finally {
    await node[Symbol.asyncDispose]();
    clearAway(folder);
  }
});
