/** A runner on a spot machine: notice from the metadata service, the job is given back, and goes on elsewhere. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
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

/** Counts steps at `/step/N`, holds `/step/2` the first time, and is the metadata service besides. */
async function outside() {
  const counts = new Map<string, number>();
  const machine = { isTaken: false };
  const server = createServer(({ url = "" }, response) => {
    if (url === "/latest/api/token") return void response.end("token");
    if (url.endsWith("/instance-action"))
      return machine.isTaken
        ? void response.end(JSON.stringify({ action: "terminate", time: new Date(Date.now() + 120_000).toISOString() }))
        : void response.writeHead(404).end();
    const count = (counts.get(url) ?? 0) + 1;
    counts.set(url, count);
    if (url !== "/step/2" || count > 1) response.end("ok");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { counts, machine, url, close: () => (server.closeAllConnections(), server.close()) };
}

const workflow = (url: string): string => `
on: workflow_dispatch
jobs:
  build:
    runs-on: [self-hosted, far]
    steps:
      - run: curl -fsS ${url}/step/1; echo kept > file; echo "KEPT=yes" >> "$GITHUB_ENV"
      - run: curl -fsS ${url}/step/2; test "$KEPT $(cat file)" = "yes kept"
      - run: curl -fsS ${url}/step/3
`;

test("a job leaves a machine that its cloud takes away, and loses no attempt", { skip, timeout: 300_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "millrace-ci-spot-"));
  const world = await outside();
  using repository = new TestRepository({ ".github/workflows/w.yml": workflow(world.url) });
  const node = await NodeProcess.open(folder, { worker: { slots: 2 }, ci: { labels: ["near"] } });
  const ci = new CiNode(`http://${node.address}`, () => readOwnerToken(dataFolder(folder)) ?? "");
  const body = { labels: ["door=ci", "isolation=sandbox", "runner=*"], uses: 2 };
  const { token } = await callEndpoint(ci.fetch, createWorkerToken, { body });
  const runner = (name: string, ...more: readonly string[]): RegisteredProcess => {
    const data = mkdtempSync(join(tmpdir(), `millrace-spot-${name}-`));
    const args = ["--server", `http://${node.address}`, "--data", data, "--labels", "far", ...more];
    return new RegisteredProcess(token, args, "runner");
  };
  await using first = runner("first", "--spot", "aws", "--spot-url", world.url, "--stop-within", "1s");
  await using second = runner("second");
  try {
    await ci.register("mill/flour", repository.folder);
    await first.start().isUp();
    const run = await ci.dispatch("mill/flour", "w");
    await until("the second step runs", () => world.counts.has("/step/2"), { limitMs: 90_000, everyMs: 50 });
    await second.start().isUp();
    world.machine.isTaken = true;
    equal(await first.ended(), 0, first.said);
    ok(first.said.includes("leaving: a spot notice: terminate"), first.said);
    const shown = await ci.ended(run, 180_000);
    deepEqual(
      shown.jobs.map(({ conclusion, attempts }) => `${conclusion} ${attempts}`),
      ["success 1"],
    );
    deepEqual(Object.fromEntries(world.counts), { "/step/1": 1, "/step/2": 2, "/step/3": 1 });
  } finally {
    await node[Symbol.asyncDispose]();
    world.close();
    clearAway(folder);
  }
});
