/**
 * One tenant's token against everything of another's CI: each call of the tables, with the names of what the other has.
 * e2e/node/tenants does the same with all tables of a node, and names that lead to nothing in CI.
 */
import { deepEqual, equal, ok } from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { effectEndpoints } from "#api/effects.ts";
import { artifactEndpoints } from "#api/task-calls.ts";
import { startNode } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { ciEndpoints } from "#doors/ci/endpoints.ts";
import { environmentEndpoints } from "#doors/ci/environments/endpoints.ts";
import { intakeEndpoints } from "#doors/ci/intake/endpoints.ts";
import { secretEndpoints } from "#doors/ci/secrets/endpoints.ts";
import { serviceEndpoints } from "#doors/ci/services/endpoints.ts";
import { whyEndpoints } from "#doors/ci/why/endpoints.ts";
import { tokenSha256 } from "#edge/identity/bearer.ts";
import type { Endpoint } from "#http/endpoint.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";
import { CiNode } from "./ci-node.ts";
import { TestRepository } from "./repository.ts";

/** In everything that the first tenant has. */
const word = "grainsack";
const workflow = `
name: ${word}
on: workflow_dispatch
jobs:
  ${word}:
    runs-on: ubuntu-latest
    environment: ${word}
    steps:
      - run: echo "${word} was here" | tee ${word}.txt; millrace artifact put ${word}.txt ${word}.txt
      - run: millrace effect run ${word} -- echo ${word}
`;
const tokens = { mill: "mill-0123456789abcdef0123456789", globex: "globex-0123456789abcdef0123456789" };

const bodies: Readonly<Record<string, unknown>> = {
  "POST /v1/repositories/{owner}/{name}/dispatches": { workflow: "w.yml" },
  "POST /v1/repositories/{owner}/{name}/events": { event: "push", payload: {} },
  "PUT /v1/effects/{key+}": { wasDone: true },
};

test("no call of one tenant reads or changes what another has", { timeout: 180_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "millrace-ci-tenants-"));
  using repository = new TestRepository({ ".github/workflows/w.yml": workflow });
  const grants = Object.entries(tokens).map(([name, token]) => ({
    name,
    tenant: name,
    roles: ["member"],
    sha256: tokenSha256(token),
  }));
  const settings = {
    edge: { listen: ["127.0.0.1:0"], identity: { tokens: grants } },
    cluster: { shards: 1 },
    node: { stopWithin: "100ms" },
  };
  const node = await startNode(Config.parse(settings), dataFolder(folder), { log: () => {} });
  try {
    const base = `http://127.0.0.1:${node.edgePorts[0]}`;
    const [mill, globex] = [new CiNode(base, () => tokens.mill), new CiNode(base, () => tokens.globex)];
    const set = async (method: "PUT" | "POST", path: string, body: unknown): Promise<void> => {
      const headers = { "content-type": "application/json", authorization: `Bearer ${node.owner}` };
      const answer = await fetch(`${base}${path}?tenant=mill`, { method, headers, body: JSON.stringify(body) });
      ok(answer.ok, `${path}: ${answer.status} ${await answer.text()}`);
    };
    await set("POST", "/v1/repositories", { repository: "mill/flour" });
    const git = async (token: string, ...words: readonly string[]): Promise<boolean> => {
      const basic = Buffer.from(`x-access-token:${token}`).toString("base64");
      const header = ["-c", `http.extraHeader=authorization: basic ${basic}`];
      const env = { ...process.env, GIT_TERMINAL_PROMPT: "0" };
      return await promisify(execFile)("git", [...header, ...words], { cwd: repository.folder, env }).then(
        () => true,
        () => false,
      );
    };
    ok(await git(tokens.mill, "push", `${base}/mill/flour.git`, "main"));
    await set("PUT", `/v1/repositories/mill/flour/environments/${word}`, { waitMinutes: 0 });
    const run = await mill.dispatch("mill/flour", "w");
    const shown = await mill.ended(run, 90_000);
    equal(shown.conclusion, "success", await mill.log(run, word).catch(String));
    const [{ job = "" } = {}] = shown.jobs;

    const names: Readonly<Record<string, string>> = {
      owner: "mill",
      name: "flour",
      repo: "flour",
      run,
      job,
      step: "0",
      environment: word,
      workflow: "w.yml",
      key: `job/${run}/${word}/0/__run_2/${word}`,
      secret: word,
      variable: word,
    };
    const pathOf = ({ path }: Endpoint): string =>
      path.replaceAll(/\{(\w+)\+?\}/g, (_, each: string) => names[each] ?? word);
    const table: readonly Endpoint[] = [
      ...ciEndpoints,
      ...environmentEndpoints,
      ...intakeEndpoints,
      ...secretEndpoints,
      ...serviceEndpoints,
      ...whyEndpoints,
      ...effectEndpoints,
      ...artifactEndpoints,
    ].filter(({ answer }) => answer.kind !== "socket");
    const call = async (as: CiNode, one: Endpoint): Promise<{ readonly status: number; readonly text: string }> => {
      const headers = { "content-type": "application/json" };
      const hasBody = one.method !== "GET" && one.method !== "DELETE";
      const body = hasBody ? { body: JSON.stringify(bodies[one.name] ?? {}), headers } : {};
      const answer = await as.fetch(pathOf(one), { method: one.method, ...body });
      return { status: answer.status, text: await answer.text() };
    };
    const reads = table.filter(({ method }) => method === "GET");
    const seen = async (): Promise<readonly string[]> => {
      const found: string[] = [];
      for (const one of reads) {
        const { status, text } = await call(mill, one);
        if (status < 300 && text.includes(word)) found.push(one.name);
      }
      return found;
    };
    const before = await seen();
    ok(before.length >= 10, `its owner sees it in ${before.join(", ")}`);
    const leaks: string[] = [];
    for (const one of table) {
      const { status, text } = await call(globex, one);
      // an answer may name what it was asked for
      if (status < 300 && text.replaceAll(names["key"] ?? "", "").includes(word))
        leaks.push(`${one.name}: ${status} ${text.slice(0, 200)}`);
      if (status >= 500) leaks.push(`${one.name}: ${status}`);
    }
    deepEqual(leaks, []);
    ok(!(await git(tokens.globex, "ls-remote", `${base}/mill/flour.git`)), "its repository is not there for others");
    ok(!(await git(tokens.globex, "push", `${base}/mill/flour.git`, "main:other")), "nor can they push to it");
    deepEqual(await seen(), before, "nothing of it has changed");
    const runs = async (): Promise<number> => (await mill.list()).length;
    await until("no run was begun by the other", async () => (await runs()) === 1, { limitMs: 60_000 });
  } finally {
    await node.stop();
    clearAway(folder);
  }
});
