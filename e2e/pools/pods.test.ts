/**
 * Jobs in pods: a real node, runners as pods, and a double of the API server that allows what the shipped Role does.
 */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { test } from "node:test";
import { until } from "#testing/until.ts";
import { TestRepository } from "#e2e/ci/repository.ts";
import { PoolLab } from "./pool-lab.ts";

const skip = process.platform === "linux" ? false : "needs linux: jobs run in its process groups";
const wait = { limitMs: 60_000, everyMs: 50 };

const workflow = `
on: workflow_dispatch
jobs:
  test:
    strategy: { matrix: { part: [a, b] } }
    runs-on: [self-hosted, podded]
    steps: [{ run: 'echo "hello $PART"', env: { PART: "\${{ matrix.part }}" } }]
`;

test(
  "a queued job gets a pod of its own, which is gone after, and its Secret with it",
  { skip, timeout: 120_000 },
  async () => {
    using repository = new TestRepository({ ".github/workflows/pod.yml": workflow });
    await using lab = await PoolLab.open();
    await lab.ci.register("mill/flour", repository.folder);
    equal(lab.api.podsEver, 0, "nothing waits: no pods");
    const run = await lab.ci.dispatch("mill/flour", "pod");
    const shown = await lab.ci.ended(run, 90_000).catch((error: unknown) => {
      throw new Error(`${lab.node.log}\n${[...lab.said.values()].join("\n")}`, { cause: error });
    });
    deepEqual(
      shown.jobs.map(({ conclusion }) => conclusion),
      ["success", "success"],
    );
    await until("all pods and Secrets are gone", () => lab.api.pods.size + lab.api.secrets.size === 0, wait);
    equal(lab.api.podsEver, 2, "a pod for each job");
    await until("the pool says so", async () => (await lab.pool()).machines.length === 0, wait);
    const { desired, busy, leaving } = await lab.pool();
    deepEqual([desired, busy, leaving], [0, 0, 0]);
    const calls = new Set(lab.api.calls.map((call) => call.split("/")[0]));
    ok(
      [...calls].every((call) => /^(list|watch|create|delete) (pods|secrets|events)$/.test(call ?? "")),
      [...calls].join(),
    );
    match(await (await lab.ci.fetch("/metrics")).text(), /gha_assigned_jobs\{pool="linux"\} 0/);
  },
);

test("a node that is killed while pods run takes them over when it is back", { skip, timeout: 180_000 }, async () => {
  using repository = new TestRepository({ ".github/workflows/pod.yml": workflow });
  await using lab = await PoolLab.open();
  await lab.ci.register("mill/flour", repository.folder);
  const run = await lab.ci.dispatch("mill/flour", "pod");
  await until("a pod is made", () => lab.api.podsEver > 0, wait);
  await lab.node.kill();
  await lab.node.start();
  const shown = await lab.ci.ended(run, 120_000);
  deepEqual(
    shown.jobs.map(({ conclusion }) => conclusion),
    ["success", "success"],
  );
  await until("all pods and Secrets are gone", () => lab.api.pods.size + lab.api.secrets.size === 0, wait);
});
