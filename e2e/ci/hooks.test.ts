/** Webhooks of forges, workflows that follow others, variables and switches, on a node. */
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { createHmac, randomUUID } from "node:crypto";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { startNode, type Running } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { callEndpoint } from "#http/client.ts";
import {
  disableWorkflow,
  enableWorkflow,
  listDeliveries,
  listWorkflows,
  makeHook,
  putVariable,
  workflowBadge,
} from "#doors/ci/intake/endpoints.ts";
import { listApprovals, reviewRun } from "#doors/ci/environments/endpoints.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";
import { CiNode } from "./ci-node.ts";
import { TestRepository } from "./repository.ts";

const params = { owner: "acme", name: "mill" };
const steps = (run: string): string => `runs-on: ubuntu-latest\n    steps: [{ run: '${run}' }]`;
const build = `
name: Build
on: { push: { branches: [main] }, pull_request: {}, repository_dispatch: { types: [go] } }
jobs:
  build:
    ${steps('echo "${{ github.event_name }} ${{ vars.CORN }} key=${{ secrets.KEY }}" $(cat corn.txt)')}
`;
const target = `
on: pull_request_target
jobs:
  label:
    ${steps('echo "target $(cat corn.txt) of ${{ github.event.pull_request.number }} key=${{ secrets.KEY }}"')}
`;
const then = `
name: Then
on: { workflow_run: { workflows: [Build], types: [completed], branches: [main] } }
jobs:
  then:
    ${steps('echo "after ${{ github.event.workflow_run.conclusion }} of ${{ github.event.workflow_run.name }}"')}
`;
const nightly = `
on: { schedule: [{ cron: '30 2 * * 1-5', timezone: Europe/Berlin }], workflow_dispatch: {} }
concurrency: \${{ github.head_ref || github.run_id }}
jobs:
  night:
    if: github.run_number > 0 && github.run_id != ''
    ${steps("echo night")}
`;

const scan = `
on: push
jobs:
  scan:
    ${steps("echo scans ${{ github.repository }} ${{ github.workflow_ref }}")}
`;

describe("webhooks on a node", { timeout: 120_000 }, () => {
  let folder: string;
  let node: Running;
  let ci: CiNode;
  let forge: TestRepository;
  let rules: TestRepository;
  let hook: { readonly path: string; readonly secret: string };

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "millrace-ci-hooks-"));
    forge = new TestRepository({
      ".github/workflows/build.yml": build,
      ".github/workflows/target.yml": target,
      ".github/workflows/then.yml": then,
      ".github/workflows/nightly.yml": nightly,
      "corn.txt": "rye",
    });
    const config = Config.parse({
      journal: { kind: "memory" },
      edge: { listen: ["127.0.0.1:0"] },
      cluster: { shards: 1 },
      worker: { slots: 4 },
      ci: { required: [{ owner: "acme", repository: "rules/all", workflow: "scan.yml" }] },
    });
    node = await startNode(config, dataFolder(join(folder, "data")), { log: () => {} });
    ci = new CiNode(`http://127.0.0.1:${node.edgePorts[0]}`, () => node.owner);
    await ci.register("acme/mill", forge.folder);
    rules = new TestRepository({ ".github/workflows/scan.yml": scan });
    await ci.register("rules/all", rules.folder);
    hook = await callEndpoint(ci.fetch, makeHook, { params });
    await callEndpoint(ci.fetch, putVariable, { params: { variable: "corn" }, body: { value: "wheat" } });
    const secret = { method: "PUT", headers: { "content-type": "application/json" } };
    const put = await ci.fetch("/v1/secrets/ci%2FKEY", { ...secret, body: JSON.stringify({ value: "hunter22" }) });
    ok(put.ok, await put.text());
  });

  after(async () => {
    await node.stop();
    forge[Symbol.dispose]();
    rules[Symbol.dispose]();
    clearAway(folder);
  });

  const post = async (headers: Record<string, string>, body: string): Promise<Response> =>
    await fetch(`http://127.0.0.1:${node.edgePorts[0]}${hook.path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body,
    });
  const github = async (
    event: string,
    body: object,
    more: { id?: string; secret?: string } = {},
  ): Promise<Response> => {
    const text = JSON.stringify(body);
    const signature = createHmac("sha256", more.secret ?? hook.secret)
      .update(text)
      .digest("hex");
    return await post(
      {
        "x-github-event": event,
        "x-github-delivery": more.id ?? randomUUID(),
        "x-hub-signature-256": `sha256=${signature}`,
      },
      text,
    );
  };
  const runsOf = async (count: number, query: Record<string, string>): Promise<readonly string[]> => {
    let found: readonly { readonly run: string }[] = [];
    await until(
      `${count} runs of ${JSON.stringify(query)}`,
      async () => (found = await ci.list({ repository: "acme/mill", ...query })).length >= count,
      { limitMs: 60_000, everyMs: 100 },
    );
    return found.map(({ run }) => run);
  };
  const push = (before_: string, sha: string) => ({
    ref: "refs/heads/main",
    before: before_,
    after: sha,
    repository: { id: 1, full_name: "forge/original" },
    sender: { login: "ada" },
  });

  test("CI-53, CI-57: a signed push runs once, however often it comes; what is not signed is refused", async () => {
    const first = forge.git("rev-parse", "HEAD").trim();
    const sha = forge.commit({ "other.txt": "x" });
    const body = push(first, sha);
    equal((await github("push", body, { secret: "wrong" })).status, 401);
    equal((await post({ "x-github-event": "push", "x-github-delivery": "1" }, JSON.stringify(body))).status, 401);
    equal((await post({}, JSON.stringify(body))).status, 400);
    equal((await github("push", body, { id: "one" })).status, 202);
    for (const id of ["one", "another"]) {
      const again = await github("push", body, { id });
      deepEqual([again.status, ((await again.json()) as { duplicate: boolean }).duplicate], [200, true]);
    }
    const [run = ""] = await runsOf(1, { workflow: "build.yml" });
    equal((await ci.ended(run)).conclusion, "success");
    match(await ci.log(run, "build"), /push wheat key=\*\*\* rye/);
    const [followed = ""] = await runsOf(1, { workflow: "then.yml" });
    await ci.ended(followed);
    match(await ci.log(followed, "then"), /after success of Build/);
    equal((await ci.list({ repository: "acme/mill", workflow: "build.yml" })).length, 1);
    const { deliveries } = await callEndpoint(ci.fetch, listDeliveries, { params });
    deepEqual([...new Set(deliveries.map((one) => one.event))].toSorted(), ["push", "workflow_run"]);
  });

  test("CI-56, CI-57: a fork's request runs merged and without secrets; the base's own workflow has them", async () => {
    forge.git("checkout", "--quiet", "-b", "topic", "HEAD");
    const head = forge.commit({ "corn.txt": "barley" });
    forge.git("update-ref", "refs/pull/7/head", head);
    forge.git("checkout", "--quiet", "main");
    forge.commit({ "third.txt": "z" });
    const answer = await github("pull_request", {
      action: "opened",
      number: 7,
      pull_request: {
        number: 7,
        head: { ref: "topic", sha: head, repo: { id: 2, full_name: "acme/mill" } },
        base: { ref: "main", sha: forge.git("rev-parse", "main").trim(), repo: { id: 1 } },
      },
      repository: { id: 1, full_name: "forge/original" },
      sender: { login: "eve" },
    });
    equal(answer.status, 202);
    const [run = ""] = await runsOf(1, { workflow: "build.yml", branch: "7/merge" });
    await until("a stranger's run waits", async () => (await ci.show(run)).status === "waiting", { limitMs: 60_000 });
    const { waiting } = await callEndpoint(ci.fetch, listApprovals, { params: { run } });
    deepEqual(
      waiting.map(({ environment, jobs, approvals }) => [environment, jobs, approvals]),
      [["", ["build"], 1]],
    );
    await callEndpoint(ci.fetch, reviewRun, { params: { run }, body: { state: "approved" } });
    const ended = await ci.ended(run);
    deepEqual([ended.ref, ended.conclusion, ended.actor], ["refs/pull/7/merge", "success", "eve"]);
    match(await ci.log(run, "build"), /pull_request wheat key= barley/);
    const [labelled = ""] = await runsOf(1, { workflow: "target.yml" });
    await ci.ended(labelled);
    match(await ci.log(labelled, "label"), /target rye of 7 key=\*\*\*/);
  });

  test("CI-57: an owner's required workflow runs for all of its repositories, from where it is written", async () => {
    const [scan = ""] = await runsOf(1, { workflow: "rules/all/.github/workflows/scan.yml" });
    equal((await ci.ended(scan)).conclusion, "success");
    match(await ci.log(scan, "scan"), /scans acme\/mill rules\/all\/.github\/workflows\/scan.yml@refs\/heads\/main/);
  });

  test("GitLab and Gitea: their words and signatures mean the same", async () => {
    const before_ = forge.git("rev-parse", "HEAD~1").trim();
    const body = { object_kind: "push", ...push(before_, forge.git("rev-parse", "HEAD").trim()), user_username: "kim" };
    const text = JSON.stringify(body);
    const heads = { "x-gitlab-event": "Push Hook", "idempotency-key": randomUUID() };
    equal((await post({ ...heads, "x-gitlab-token": "wrong" }, text)).status, 401);
    equal((await post({ ...heads, "x-gitlab-token": hook.secret }, text)).status, 202);
    await runsOf(2, { workflow: "build.yml", branch: "main" });
    const dispatched = JSON.stringify({ action: "go", client_payload: {}, sender: { login: "bo" } });
    const signature = createHmac("sha256", hook.secret).update(dispatched).digest("hex");
    const gitea = { "x-gitea-event": "repository_dispatch", "x-gitea-delivery": "d1", "x-gitea-signature": signature };
    equal((await post(gitea, dispatched)).status, 202);
    const runs = await runsOf(3, { workflow: "build.yml", branch: "main" });
    match(await ci.ended(runs[0] ?? "").then(async ({ run }) => await ci.log(run, "build")), /repository_dispatch/);
  });

  test("CI-58: workflows are listed with their next instant, disabled, enabled, and have a picture", async () => {
    const { workflows } = await callEndpoint(ci.fetch, listWorkflows, { params });
    const night = workflows.find(({ path }) => path.endsWith("nightly.yml"));
    equal(night?.schedules[0]?.zone, "Europe/Berlin");
    match(night.schedules[0].next ?? "", /T0[01]:30:00.000Z$/);
    const one = { params: { ...params, workflow: "nightly.yml" } };
    await callEndpoint(ci.fetch, disableWorkflow, one);
    await rejects(ci.dispatch("acme/mill", "nightly.yml"), /it is disabled/);
    await callEndpoint(ci.fetch, enableWorkflow, one);
    const run = await ci.ended(await ci.dispatch("acme/mill", "nightly.yml"));
    deepEqual(
      run.jobs.map(({ conclusion }) => conclusion),
      ["success"],
      "a job's condition knows the run's number",
    );
    const picture = await callEndpoint(ci.fetch, workflowBadge, { params: { ...params, workflow: "nightly.yml" } });
    match(await picture.text(), /passing/);
  });
});
