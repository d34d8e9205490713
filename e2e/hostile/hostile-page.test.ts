/**
 * A person looks at a page of another site while a node with default settings runs on their machine, and while they
 * are signed in to its console. Whatever that page tries, from wherever it was served, the node must not do it, and the
 * page must not learn what the node knows.
 */
import { deepEqual, equal, ok } from "node:assert/strict";
import { createServer, request, type Server } from "node:http";
import { mkdtemp } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { once } from "node:events";
import { after, before, describe, test } from "node:test";
import { startNode, type Running } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { orderFromCommand } from "#app/job-order.ts";
import { Browser, browserSkip, type Page } from "#testing/browser.ts";
import { clearAway } from "#testing/clear-away.ts";
import { attack } from "./hostile-page-script.ts";
import { bundleConsole } from "#testing/console.ts";

const evil = "evil.example";
const rebound = "rebound.example";

/** What tells that an attempt got nothing. A form's frame and an opaque answer tell the page nothing. */
const isHarmless = (got: string): boolean =>
  /^(threw|nothing came|opaque|sent|true|false|403 |401 |404 |405 )/.test(got);

describe("a hostile page", { skip: browserSkip, timeout: 180_000 }, () => {
  let folder: string;
  let node: Running;
  let browser: Browser;
  let job: string;
  let pages: Server;
  let pagesPort: number;
  let nodePort: number;

  before(async () => {
    bundleConsole();
    folder = await mkdtemp(join(tmpdir(), "millrace-hostile-page-"));
    const config = Config.parse({
      edge: { listen: ["127.0.0.1:0"] },
      cluster: { shards: 1 },
      node: { stopWithin: "100ms" },
    });
    node = await startNode(config, dataFolder(folder), { log: () => {} });
    nodePort = node.edgePorts[0] ?? 0;
    job = (await node.client.submit(orderFromCommand(["sleep", "300"], { tenant: "default" }))).jobId;
    pages = createServer((_request, response) =>
      response.setHeader("content-type", "text/html").end("<!doctype html><title>evil</title><body>"),
    );
    await once(pages.listen(0, "127.0.0.1"), "listening");
    pagesPort = (pages.address() as AddressInfo).port;
    browser = await Browser.open([evil, rebound]);
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${nodePort}${(await node.loginLink())?.path}`);
    await page.until("the browser is signed in", "document.querySelector('#app')");
    await page.close();
  });
  after(async () => {
    await browser[Symbol.asyncDispose]();
    pages.close();
    pages.closeAllConnections();
    await node.stop();
    clearAway(folder);
  });

  const operator = { authorization: () => `Bearer ${node.owner}` };
  const ask = async (path: string): Promise<unknown> =>
    await (
      await fetch(`http://127.0.0.1:${nodePort}${path}`, { headers: { authorization: operator.authorization() } })
    ).json();

  async function state(): Promise<unknown> {
    const { items } = (await ask("/v1/jobs")) as { readonly items: readonly { job: string; phase: string }[] };
    const drain = (await ask("/v1/node/drain")) as { readonly state: string };
    const { entries } = (await ask("/v1/build-cache/entries")) as { readonly entries: readonly unknown[] };
    return { jobs: items.map(({ job: id, phase }) => [id, phase === "CANCELLED"]), drain: drain.state, entries };
  }

  async function attackFrom(page: Page, base: string): Promise<Record<string, string>> {
    return await page.evaluate(`${attack.replaceAll("JOB", job)}(${JSON.stringify(base)})`);
  }

  for (const [what, origin, target] of [
    ["of another site", () => `http://${evil}:${pagesPort}`, "127.0.0.1"],
    ["of another site, calling localhost", () => `http://${evil}:${pagesPort}`, "localhost"],
    ["of another program on this machine", () => `http://127.0.0.1:${pagesPort}`, "127.0.0.1"],
    ["of localhost, which is another origin", () => `http://localhost:${pagesPort}`, "127.0.0.1"],
    ["of another site, under a name of its own that leads here", () => `http://${evil}:${pagesPort}`, rebound],
    ["whose name leads to the node by now", () => `http://${rebound}:${nodePort}`, rebound],
  ] as const)
    test(`${what} changes nothing and learns nothing`, async () => {
      const before = await state();
      const page = await browser.newPage();
      await page.goto(`${origin()}/`);
      const results = await attackFrom(page, `http://${target}:${nodePort}`);
      for (const [attempt, got] of Object.entries(results)) ok(isHarmless(got), `${attempt}: ${got}`);
      deepEqual(await state(), before);
      await page.close();
    });

  test("would have been able to do all that as a page of the node itself", async () => {
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${nodePort}/`);
    const results = await attackFrom(page, `http://127.0.0.1:${nodePort}`);
    for (const attempt of ["submit by fetch", "read by fetch", "read the session", "read metrics"])
      ok(/^20[01] /.test(results[attempt] ?? ""), `${attempt}: ${results[attempt]}`);
    for (const attempt of ["read by EventSource", "watch a job by EventSource", "open a WebSocket"])
      ok(/^(message|opened)/.test(results[attempt] ?? ""), `${attempt}: ${results[attempt]}`);
    await page.close();
  });

  test("is refused by name: a Host that is not this node's address", async () => {
    for (const host of [`${rebound}:${nodePort}`, "evil.example", "127.0.0.1.evil.example", "localhost.evil.example"])
      for (const [method, path] of [
        ["GET", "/v1/session"],
        ["POST", "/v1/builds"],
        ["GET", "/cas/" + "0".repeat(64)],
        ["GET", "/metrics"],
        ["GET", "/peers"],
      ] as const)
        equal(await statusOf(method, path, { host }), 403, `${host} ${method} ${path}`);
    equal(await statusOf("GET", "/v1/session", { host: `127.0.0.1:${nodePort}` }), 200);
  });

  const statusOf = (method: string, path: string, headers: Record<string, string>): Promise<number | undefined> =>
    new Promise((resolve, reject) =>
      request({ port: nodePort, host: "127.0.0.1", method, path, headers }, (response) => {
        response.resume();
        resolve(response.statusCode);
      })
        .on("error", reject)
        .end(),
    );
});
