/** Jobs that deploy wait for people, for time, and for one another; what became of them is listed. */
import { deepEqual, equal, match, rejects } from "node:assert/strict";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { startNode } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { tokenSha256 } from "#edge/identity/bearer.ts";
import { callEndpoint } from "#http/client.ts";
import { listApprovals, listDeployments, putEnvironment, reviewRun } from "#doors/ci/environments/endpoints.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";
import { CiNode } from "./ci-node.ts";
import { TestRepository } from "./repository.ts";

const workflow = `
on: workflow_dispatch
jobs:
  build:
    runs-on: ubuntu-latest
    steps: [{ run: echo built }]
  deploy:
    needs: build
    runs-on: ubuntu-latest
    environment: { name: production, url: 'https://\${{ steps.at.outputs.host }}/' }
    steps: [{ id: at, run: 'echo host=web.example.org >> "$GITHUB_OUTPUT"' }]
  after:
    needs: deploy
    if: always()
    runs-on: ubuntu-latest
    environment: { name: report, deployment: false }
    steps: [{ run: 'echo "after \${{ needs.deploy.result }}"' }]
`;
const exclusive = `
on: workflow_dispatch
jobs:
  only:
    strategy: { matrix: { n: [1, 2, 3] } }
    runs-on: ubuntu-latest
    environment: alone
    steps: [{ run: 'mkdir "$LOCK" && sleep 0.3 && rmdir "$LOCK"', env: { LOCK: /tmp/LOCK_NAME } }]
`;
const tokens = { ada: "ada-0123456789abcdef0123456789", bob: "bob-0123456789abcdef0123456789" };
const params = { owner: "mill", name: "flour" };

test("CI-63 a deployment waits for its reviewers, each counted once", { timeout: 120_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "millrace-ci-environments-"));
  const lock = `millrace-alone-${process.pid}`;
  using repository = new TestRepository({
    ".github/workflows/w.yml": workflow,
    ".github/workflows/x.yml": exclusive.replace("LOCK_NAME", lock),
  });
  const settings = {
    edge: {
      listen: ["127.0.0.1:0"],
      identity: {
        tokens: Object.entries(tokens).map(([name, token]) => ({
          name,
          sha256: tokenSha256(token),
          tenant: "default",
          roles: ["member"],
        })),
      },
    },
    cluster: { shards: 1 },
    node: { stopWithin: "100ms" },
    worker: { slots: 4 },
  };
  const node = await startNode(Config.parse(settings), dataFolder(folder), { log: () => {} });
  try {
    const base = `http://127.0.0.1:${node.edgePorts[0]}`;
    const ci = new CiNode(base, () => node.owner);
    const [ada, bob] = [new CiNode(base, () => tokens.ada), new CiNode(base, () => tokens.bob)];
    await ci.register("mill/flour", repository.folder);
    const rules = async (environment: string, body: object): Promise<void> => {
      await callEndpoint(ci.fetch, putEnvironment, { params: { ...params, environment }, body });
    };
    await rules("Production", { reviewers: ["ada", "bob"], approvals: 2 });
    await rules("alone", { exclusive: true });
    const waits = async (run: string) =>
      await until(`${run} waits`, async () => (await ci.show(run)).status === "waiting", { limitMs: 60_000 });
    const review = async (as: CiNode, run: string, state: "approved" | "rejected") =>
      (await callEndpoint(as.fetch, reviewRun, { params: { run }, body: { state } })).reviewed;
    const pending = async (run: string) =>
      (await callEndpoint(ci.fetch, listApprovals, { params: { run } })).waiting.map(
        ({ environment, jobs, approvedBy }) => [environment, jobs.join(), approvedBy.join()],
      );

    const run = await ci.dispatch("mill/flour", "w");
    await waits(run);
    deepEqual(await pending(run), [["production", "deploy", ""]]);
    await rejects(review(ci, run, "approved"), /do not let owner review it/);
    deepEqual(await review(ada, run, "approved"), ["production"]);
    await review(ada, run, "approved");
    deepEqual(await pending(run), [["production", "deploy", "ada"]]);
    equal((await ci.show(run)).jobs.find(({ id }) => id === "deploy")?.status, "waiting");
    await review(bob, run, "approved");
    equal((await ci.ended(run)).conclusion, "success");
    await rejects(review(bob, run, "approved"), /not-found/);

    const other = await ci.dispatch("mill/flour", "w");
    await waits(other);
    await review(bob, other, "rejected");
    const ended = await ci.ended(other);
    equal(ended.conclusion, "failure");
    match(ended.jobs.find(({ id }) => id === "deploy")?.reason ?? "", /rejected by bob/);
    match(await ci.log(other, "after"), /after failure/);
    const { deployments } = await callEndpoint(ci.fetch, listDeployments, { params, query: {} });
    deepEqual(
      deployments.map((one) => [one.environment, one.state, one.run, one.url]),
      [["production", "success", run, "https://web.example.org/"]],
    );

    const alone = await ci.dispatch("mill/flour", "x");
    equal((await ci.ended(alone)).conclusion, "success", await ci.log(alone, "only (1)"));

    const third = await ci.dispatch("mill/flour", "w");
    await waits(third);
    await ci.cancel(third);
    equal((await ci.ended(third)).conclusion, "cancelled");
  } finally {
    await node.stop();
    clearAway(folder);
  }
});
