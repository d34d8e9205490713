/** Jobs send JUnit reports with the token of their claim: shown with the run; flaky where a re-run ends otherwise. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { dataFolder } from "#app/node/data-folder.ts";
import { readOwnerToken } from "#app/node/owner-token.ts";
import { ExportedRun } from "#doors/ci/export/endpoints.ts";
import { listTestReports, listTests } from "#doors/ci/tests/endpoints.ts";
import { showUsage } from "#api/usage.ts";
import { callEndpoint } from "#http/client.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";
import { NodeProcess } from "#e2e/store/node-process.ts";
import { CiNode } from "./ci-node.ts";
import { TestRepository } from "./repository.ts";

const skip = process.platform === "linux" ? false : "needs linux: jobs run in its process groups";

test("test reports of a run, and a flaky test", { skip, timeout: 240_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "millrace-ci-tests-"));
  const mark = join(folder, "second-time");
  const workflow = `
on: workflow_dispatch
jobs:
  test:
    runs-on: self-hosted
    steps:
      - run: |
          if [ -e ${mark} ]; then f=""; else f="<failure message='it broke'/>"; fi
          t="<testcase name='grinds' time='0.5'>$f</testcase><testcase name='sifts'/>"
          echo "<testsuite name='mill'>$t</testsuite>" > junit.xml
          echo "<!DOCTYPE a [<!ENTITY b 'c'>]><testsuite/>" > bomb.xml
      - run: millrace ci report -- junit.xml
      - run: millrace ci report -- junit.xml
      - run: if millrace ci report -- bomb.xml; then exit 1; fi
`;
  using repository = new TestRepository({ ".github/workflows/test.yml": workflow });
  const node = await NodeProcess.open(folder, { worker: { slots: 2 }, ci: { isolation: "none" } });
  const ci = new CiNode(`http://${node.address}`, () => readOwnerToken(dataFolder(folder)) ?? "");
  try {
    await ci.register("mill/flour", repository.folder);
    const run = await ci.dispatch("mill/flour", "test");
    const { jobs } = await ci.ended(run);
    equal(jobs[0]?.conclusion, "success", await ci.log(run, "test"));
    match(await ci.log(run, "test"), /junit\.xml: 1 passed, 1 failed, 0 skipped/);
    match(await ci.log(run, "test"), /document type or entities, which is refused/);
    const { items, passed, failed } = await callEndpoint(ci.fetch, listTestReports, { params: { run } });
    deepEqual([items.length, passed, failed], [1, 1, 1], "sent twice, it counts once");
    deepEqual(items[0]?.failures, [{ suite: "mill", name: "grinds", message: "it broke" }]);
    const tests = (sort: "flaky" | "slow") =>
      callEndpoint(ci.fetch, listTests, { params: { owner: "mill", name: "flour" }, query: { sort } });
    deepEqual((await tests("flaky")).items, []);
    writeFileSync(mark, "");
    await ci.ended(await ci.rerun(run, {}));
    const [flaky] = (await tests("flaky")).items;
    deepEqual([flaky?.suite, flaky?.name, flaky?.flaky, flaky?.failures], ["mill", "grinds", 1, 1]);
    equal((await tests("slow")).items[0]?.msMedian, 500);
    const lines = await (await ci.fetch("/v1/export/runs")).text();
    const exported = lines
      .trim()
      .split("\n")
      .map((line) => ExportedRun.parse(JSON.parse(line)));
    deepEqual(
      exported.map(({ run: { repository, conclusion }, tests: sent }) => [repository, conclusion, sent[0]?.failed]),
      [
        ["mill/flour", "success", 0],
        ["mill/flour", "success", 1],
      ],
    );
    equal(await (await ci.fetch("/v1/export/runs?to=2020-01-01")).text(), "");
  } finally {
    await node[Symbol.asyncDispose]();
    clearAway(folder);
  }
});

/** Uploads `junit.xml` as an artifact, by the calls of the official client. */
const upload = `
const { ACTIONS_RESULTS_URL: server, ACTIONS_RUNTIME_TOKEN: token } = process.env;
const { scp } = JSON.parse(Buffer.from(token.split(".")[1], "base64url"));
const [, run, job] = scp.split(" ").find((one) => one.startsWith("Actions.Results:")).split(":");
const ids = { workflow_run_backend_id: run, workflow_job_run_backend_id: job };
const call = async (method, body) => {
  const path = "twirp/github.actions.results.api.v1.ArtifactService/" + method;
  const headers = { "content-type": "application/json", authorization: "Bearer " + token };
  const text = JSON.stringify({ ...ids, ...body });
  const answer = await fetch(new URL(path, server), { method: "POST", headers, body: text });
  if (!answer.ok) throw new Error(method + ": " + (await answer.text()));
  return await answer.json();
};
const put = async (url, body) => {
  const answer = await fetch(url, { method: "PUT", body });
  if (!answer.ok) throw new Error("put: " + (await answer.text()));
};
(async () => {
  const bytes = require("node:fs").readFileSync("junit.xml");
  const name = "test-results";
  const { signed_upload_url: url } = await call("CreateArtifact", { name, version: 7, mime_type: "text/xml" });
  const id = Buffer.from("block-00").toString("base64");
  await put(url + "&comp=block&blockid=" + encodeURIComponent(id), bytes);
  await put(url + "&comp=blocklist", "<BlockList><Latest>" + id + "</Latest></BlockList>");
  await call("FinalizeArtifact", { name, size: String(bytes.length) });
})();
`;

test(
  "reports in uploaded artifacts are read, and usage knows the processor time of jobs",
  { skip, timeout: 240_000 },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "millrace-ci-uploaded-"));
    const workflow = `
on: workflow_dispatch
jobs:
  test:
    runs-on: self-hosted
    steps:
      - run: |
          i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done
          t="<testcase name='grinds'/><testcase name='sifts'><failure/></testcase>"
          echo "<testsuite name='mill'>$t</testsuite>" > junit.xml
      - uses: ./up
`;
    using repository = new TestRepository({
      ".github/workflows/test.yml": workflow,
      "up/action.yml": "name: up\nruns: { using: node20, main: up.js }\n",
      "up/up.js": upload,
    });
    const node = await NodeProcess.open(folder, { worker: { slots: 1 } });
    const ci = new CiNode(`http://${node.address}`, () => readOwnerToken(dataFolder(folder)) ?? "");
    try {
      await ci.register("mill/flour", repository.folder);
      const run = await ci.dispatch("mill/flour", "test");
      equal((await ci.ended(run, 120_000)).conclusion, "success", await ci.log(run, "test"));
      const { items, passed, failed } = await callEndpoint(ci.fetch, listTestReports, { params: { run } });
      deepEqual(
        items.map(({ name, job }) => [name, job]),
        [["test-results.xml", "test"]],
      );
      deepEqual([passed, failed], [1, 1]);
      const used = async () =>
        (await callEndpoint(ci.fetch, showUsage, { query: { by: "repository" } })).items.find(
          ({ repository: of }) => of === "mill/flour",
        );
      await until("usage is written", async () => (await used()) !== undefined, { limitMs: 120_000, everyMs: 500 });
      ok(((await used())?.cpuSeconds ?? 0) > 0.05, JSON.stringify(await used()));
    } finally {
      await node[Symbol.asyncDispose]();
      clearAway(folder);
    }
  },
);
