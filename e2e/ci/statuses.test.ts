/** Statuses of commits, set at a double of a forge: with its token, again after trouble, and never elsewhere. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setWebhook, showWebhook } from "#api/webhooks.ts";
import { startNode } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { callEndpoint } from "#http/client.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";
import { CiNode } from "./ci-node.ts";
import { TestRepository } from "./repository.ts";

const workflow = (end: string): string => `
name: Build
on: workflow_dispatch
jobs:
  build: { runs-on: ubuntu-latest, steps: [{ run: '${end}' }] }
`;

type Call = { readonly path: string; readonly token: string; readonly state: string; readonly context: string };

/** Knows one commit; \`trouble\` answers so many calls with 503. */
async function forge(known: () => string) {
  const calls: Call[] = [];
  const answers = { trouble: 0 };
  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (part: Buffer) => (text += part.toString()));
    request.on("end", () => {
      const path = request.url ?? "";
      if (answers.trouble > 0) {
        answers.trouble -= 1;
        return void response.writeHead(503).end();
      }
      const { state, context, name } = JSON.parse(text) as Record<string, string>;
      const token = request.headers.authorization ?? String(request.headers["private-token"]);
      calls.push({ path, token, state: state ?? "", context: context ?? name ?? "" });
      response.writeHead(path.endsWith(known()) ? 201 : 422).end("{}");
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const close = (): void => (server.closeAllConnections(), void server.close());
  return { calls, answers, url: `http://127.0.0.1:${port}`, close };
}

test("runs and jobs set statuses of their commit at the forge", { timeout: 240_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "millrace-ci-statuses-"));
  using repository = new TestRepository({
    ".github/workflows/good.yml": workflow("true"),
    ".github/workflows/bad.yml": workflow("exit 1"),
  });
  const sha = repository.git("rev-parse", "HEAD").trim();
  let known = sha;
  const [github, gitlab] = [await forge(() => known), await forge(() => known)];
  const config = Config.parse({
    journal: { kind: "memory" },
    edge: { listen: ["127.0.0.1:0"] },
    cluster: { shards: 1 },
    webhooks: { http: true, privateAddresses: true },
  });
  const node = await startNode(config, dataFolder(join(folder, "data")), { log: () => {} });
  const ci = new CiNode(`http://127.0.0.1:${node.edgePorts[0]}`, () => node.owner);
  const set = async (name: string, body: Parameters<typeof callEndpoint<typeof setWebhook>>[2]["body"]) =>
    await callEndpoint(ci.fetch, setWebhook, { params: { name }, body });
  const refused = async (name: string, body: object): Promise<number> =>
    (
      await ci.fetch(`/v1/webhooks/${name}`, {
        method: "PUT",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      })
    ).status;
  try {
    await ci.register("mill/flour", repository.folder);
    equal(await refused("forge", { url: `${github.url}/api`, format: "ci:github" }), 400, "without a token");
    const secret = "token-of-the-forge";
    await set("forge", { url: `${github.url}/api/`, format: "ci:github", kinds: ["job", "task"], secret });
    await set("lab", { url: `${gitlab.url}/api/v4`, format: "ci:gitlab", secret });
    equal(await refused("forge", { url: `${gitlab.url}/api`, format: "ci:github" }), 400, "its token goes elsewhere");
    github.answers.trouble = 2;
    await ci.ended(await ci.dispatch("mill/flour", "good"));
    await ci.ended(await ci.dispatch("mill/flour", "bad"));
    const of = (context: string): readonly string[] =>
      github.calls.filter((call) => call.context === context).map(({ state }) => state);
    const run = "Build (workflow_dispatch)";
    const job = "Build / build (workflow_dispatch)";
    await until(
      "all statuses are there",
      () => of(run).length === 4 && of(job).length === 6 && gitlab.calls.length === 4,
      {
        limitMs: 120_000,
        everyMs: 50,
      },
    );
    deepEqual(of(run), ["pending", "success", "pending", "failure"]);
    deepEqual(of(job), ["pending", "pending", "success", "pending", "pending", "failure"]);
    deepEqual([...new Set(github.calls.map(({ path }) => path))], [`/api/repos/mill/flour/statuses/${sha}`]);
    deepEqual([...new Set(github.calls.map(({ token }) => token))], [`Bearer ${secret}`]);
    deepEqual(
      gitlab.calls.map(({ path, token, state }) => [path, token, state]),
      ["pending", "success", "pending", "failed"].map((state) => [
        `/api/v4/projects/mill%2Fflour/statuses/${sha}`,
        secret,
        state,
      ]),
    );
    known = "another";
    await ci.ended(await ci.dispatch("mill/flour", "good"));
    const shown = async () => await callEndpoint(ci.fetch, showWebhook, { params: { name: "lab" } });
    await until("a commit that the forge does not know is given up", async () => (await shown()).dead === 2, {
      limitMs: 120_000,
      everyMs: 100,
    });
    const { letters } = await shown();
    ok(letters.every(({ attempts, why }) => attempts === 1 && why.includes("422")));
    ok(!JSON.stringify(await shown()).includes(secret));
  } finally {
    await node.stop();
    github.close();
    gitlab.close();
    clearAway(folder);
  }
});
