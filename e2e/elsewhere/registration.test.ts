// Workers that register with a token: what they may do, how they are removed, and over which TLS they are let in.
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { listAudit } from "#api/audit.ts";
import { logsOfJob, showJob, submitJob } from "#api/jobs.ts";
import { createWorkerToken, listWorkers, listWorkerTokens, removeWorker } from "#api/workers.ts";
import { startNode } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { testAuthority } from "#edge/testing/certificate.ts";
import { tokenSha256 } from "#edge/identity/bearer.ts";
import { NodeProcess } from "#e2e/store/node-process.ts";
import { callEndpoint, type Fetch } from "#http/client.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";
import { RegisteredProcess } from "./worker-process.ts";

const root = mkdtempSync(join(tmpdir(), "millrace-registration-"));
after(() => clearAway(root));
const patience = { limitMs: 60_000, everyMs: 50 };
const runs = ["door=shell", "place=*"];

function callsOf(ask: Fetch) {
  const show = (job: string, tenant?: string) =>
    callEndpoint(ask, showJob, { params: { job }, ...(tenant !== undefined && { tenant }) });
  return {
    run: async (line: string, tenant?: string): Promise<string> => {
      const body = { command: ["sh", "-c", line] };
      return (await callEndpoint(ask, submitJob, { body, ...(tenant !== undefined && { tenant }) })).job;
    },
    show,
    ended: async (job: string, tenant?: string): Promise<string> => {
      await until("it has ended", async () => (await show(job, tenant)).endedAt !== undefined, patience);
      return (await show(job, tenant)).phase;
    },
    logs: async (job: string, tenant?: string): Promise<string> => {
      let text = "";
      const request = { params: { job }, query: {}, ...(tenant !== undefined && { tenant }) };
      for await (const { data } of await callEndpoint(ask, logsOfJob, request)) text += data.text;
      return text;
    },
    token: async (body: object, tenant?: string): Promise<string> =>
      (await callEndpoint(ask, createWorkerToken, { body, ...(tenant !== undefined && { tenant }) })).token,
  };
}

describe("a worker that registers", { timeout: 200_000 }, () => {
  let node: NodeProcess;
  const ask: Fetch = (path, init) =>
    fetch(`http://${node.address}${path}`, { ...init, headers: { ...(init.headers as object), ...node.headers } });
  const { run, show, ended, logs, token } = callsOf(ask);
  const worker = (given: string, name: string, ...more: readonly string[]): RegisteredProcess =>
    new RegisteredProcess(given, ["--server", `http://${node.address}`, "--data", join(root, name), ...more]);

  before(async () => {
    node = await NodeProcess.open(join(root, "node"), { cluster: { shards: 2 } });
  });
  after(async () => await node[Symbol.asyncDispose]());

  test("runs work of its tenant only, knows its node from inside a task, and is gone when it is removed", async () => {
    const given = await token({ name: "box", labels: runs }, "acme");
    await using one = await worker(given, "one", "--labels", "place=here,node=forged").start().isUp();
    match(one.said, /worker box-[0-9a-f]{12} .*place=here.*pool=default/);
    ok(!one.said.includes("node=forged"), "labels that its token does not allow are not offered");
    const theirs = await run("true", "globex");
    const job = await run("cat $MILLRACE_TOKEN_FILE | cut -c1-2; echo $MILLRACE_SERVER", "acme");
    equal(await ended(job, "acme"), "SUCCEEDED");
    equal(await logs(job, "acme"), `ey\nhttp://${node.address}\n`);
    equal((await show(theirs, "globex")).endedAt, undefined, "another tenant's waits");
    const { items } = await callEndpoint(ask, listWorkers, { query: {} });
    deepEqual(
      items.map(({ tenant, pools, slots }) => [tenant, pools, slots]),
      [["acme", ["default"], 1]],
    );
    const audit = await callEndpoint(ask, listAudit, { query: {}, tenant: "acme" });
    const calls = audit.items.map(({ call }) => call);
    for (const call of ["POST /v1/workers/tokens", "POST /v1/workers/register"]) ok(calls.includes(call), call);
    ok(!JSON.stringify(audit).includes(given.split(".")[3] ?? ""), "no secret in the audit trail");
    await one.end("SIGKILL");
    one.start();
    await one.isUp();
    const again = await callEndpoint(ask, listWorkers, { query: {} });
    equal(again.items.length, 1, "the same worker after a restart, although its token was for one");
    await callEndpoint(ask, removeWorker, { params: { id: items[0]?.id ?? "" }, tenant: "acme" });
    const late = await run("echo late", "acme");
    await one.end("SIGKILL");
    one.start();
    equal(await one.ended(), 1);
    match(one.said, /the worker was removed/);
    equal((await show(late, "acme")).endedAt, undefined);
    ok(!one.said.includes("eyJ") && !node.log.includes("eyJ") && !node.log.includes("mrw1."), "no token in a log");
  });

  test("for one task runs one, and is gone", async () => {
    const given = await token({ ephemeral: true, everyTenant: true, labels: runs, uses: 1 });
    const first = await run("echo once");
    await using one = worker(given, "ephemeral").start();
    equal(await one.ended(), 0);
    const { items } = await callEndpoint(ask, listWorkers, { query: {} });
    deepEqual(
      items.filter(({ isEphemeral }) => isEphemeral),
      [],
    );
    const { items: tokens } = await callEndpoint(ask, listWorkerTokens, { query: {} });
    ok(tokens.every((each) => !("token" in each)));
    ok(["SUCCEEDED", "RUNNING"].includes((await show(first)).phase));
  });

  test("that is older than the cluster wants is told so, and leaves", async () => {
    const given = await token({ labels: runs, uses: 2 }, "acme");
    await using one = await worker(given, "old").start().isUp();
    await one.end("SIGKILL");
    const file = join(root, "node", "config.yaml");
    const config = { worker: { enabled: false }, cluster: { shards: 2, workerVersionMin: "99.0.0" } };
    writeFileSync(file, JSON.stringify({ ...config, edge: { listen: [node.address] } }));
    await node.kill();
    await node.start();
    one.start();
    equal(await one.ended(), 1);
    match(one.said, /99\.0\.0 or newer: update it/);
    await using fresh = worker(given, "fresh").start();
    equal(await fresh.ended(), 1);
    match(fresh.said, /99\.0\.0 or newer: update it/);
  });
});

describe("a worker over TLS", { timeout: 100_000 }, () => {
  const authority = testAuthority("fleet");
  let files = 0;
  const file = (text: string): string => {
    const path = join(root, `file-${(files += 1)}`);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  };
  const names = { cn: "node", dns: ["localhost"], ip: ["127.0.0.1"] };

  test("is let in by its token, or by its certificate, if it trusts the node's", async () => {
    const own = authority.issue(names);
    const ca = file(authority.cert);
    const secret = `operator-${"0123456789".repeat(4)}`;
    const identity = {
      tokens: [{ name: "ops", tenant: "*", roles: ["operator"], sha256: tokenSha256(secret) }],
    };
    const tls = { certificate: file(own.cert), key: file(own.key), clientCa: ca, clientCertificate: "required" };
    const config = Config.parse({
      worker: { enabled: false },
      cluster: { shards: 2 },
      edge: { listen: ["127.0.0.1:0"], identity, tls },
    });
    const node = await startNode(config, dataFolder(join(root, "tls")), { log: () => {} });
    try {
      const client = authority.issue({ cn: "box" });
      const [cert, key] = [file(client.cert), file(client.key)];
      const server = `https://localhost:${node.edgePorts[0]}`;
      const { httpOf } = await import("#app/client/server.ts");
      const http = httpOf({ server, ca, cert, "cert-key": key, token: secret }, {});
      const { run, ended, token } = callsOf((path, init) => http.reach(path, init));
      const given = await token({ labels: runs, everyTenant: true, uses: 3 });
      const worker = (name: string, ...more: readonly string[]) =>
        new RegisteredProcess(given, ["--server", server, "--data", join(root, name), ...more]);
      await using good = await worker("tls-1", "--ca", ca, "--cert", cert, "--cert-key", key).start().isUp();
      equal(await ended(await run("echo over TLS")), "SUCCEEDED");
      const wrong = testAuthority("stranger");
      await using stranger = worker("tls-2", "--ca", file(wrong.cert), "--cert", cert, "--cert-key", key).start();
      equal(await stranger.ended(), 1);
      match(stranger.said, /certificate is not trusted/);
      await using bare = worker("tls-3", "--ca", ca).start();
      equal(await bare.ended(), 1);
      match(bare.said, /client certificate/);
      const forged = wrong.issue({ cn: "box" });
      const args = ["--ca", ca, "--cert", file(forged.cert), "--cert-key", file(forged.key)];
      await using pretender = worker("tls-4", ...args).start();
      equal(await pretender.ended(), 1);
      ok(good.said.includes("slots"));
    } finally {
      await node.stop();
    }
  });
});
