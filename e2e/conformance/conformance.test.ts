/** The checklist against our own nodes: every item, with every option that a node supports. */
import { ok } from "node:assert/strict";
import { mkdtemp } from "node:fs/promises";
import { chmodSync, mkdirSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { startNode } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { tokenSha256 } from "#edge/identity/bearer.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";
import { Program } from "#e2e/bazel/program.ts";
import { Skip, type Case } from "./case.ts";
import { openLab } from "./connect.ts";
import type { Lab } from "./lab.ts";
import { cacheCases, crashCases, executionCases } from "./suite.ts";

const secretOf = (name: string): string => `${name}-secret-0123456789-0123456789-0123456789`;
const bearer = (name: string) => [["authorization", `Bearer ${secretOf(name)}`]] as const;

const token = (name: string, tenant: string, ...roles: readonly string[]) => ({
  name,
  tenant,
  roles,
  sha256: tokenSha256(secretOf(name)),
});

const tokens = [
  token("writer", "a", "action-cache-writer", "member"),
  token("reader", "a", "cache-reader"),
  token("narrow", "narrow", "member"),
  { ...token("worker", "a", "executor"), labels: ["door=build", "pool=*"] },
  token("tender", "*", "operator"),
];

const executes = process.platform === "linux";
const leaveGrace = 1_000;

for (const kind of ["disk", "memory"] as const)
  describe(`a node with its store ${kind === "disk" ? "on disk" : "in memory"}`, { timeout: 300_000 }, () => {
    const undo = new AsyncDisposableStack();
    const said: string[] = [];
    let lab: Lab;

    async function started(blobs: object, files: string, worker: object): Promise<string> {
      const path = await folder(undo);
      const config = Config.parse({
        cluster: { shards: 1 }, // priorities and quotas count within a shard
        journal: { kind: "memory" },
        blobs,
        build: { fetchFrom: [`${files}/`], leaveGrace: `${leaveGrace}ms`, noWorkerWithin: "1s" },
        worker,
        edge: { listen: ["127.0.0.1:0"], identity: { tokens } },
      });
      const running = await startNode(config, dataFolder(path), { log: (line) => said.push(line) });
      undo.defer(() => running.stop());
      await running.client.setTenant("narrow", { weight: 1, runningMax: 1, queuedMax: 3 });
      return running.edgeAddresses[0] ?? "";
    }

    before(async () => {
      const { server, url } = await fileServer();
      undo.defer(() => void server.close());
      const actionsIn = await folder(undo);
      const blobs = kind === "disk" ? { kind, promised: "0s" } : { kind };
      const target = await started(blobs, url, { enabled: kind === "disk", slots: 4, actionsIn });
      const full = await started({ kind, sizeMax: kind === "disk" ? "64MiB" : "1MiB" }, url, { enabled: false });
      const http = `http://${target}`;
      lab = undo.use(
        await openLab({
          target,
          full,
          http,
          files: url,
          headers: bearer("writer"),
          readerHeaders: bearer("reader"),
          narrowHeaders: bearer("narrow"),
          executorHeaders: bearer("worker"),
          platform: [{ name: "OSFamily", value: "Linux" }],
          littleMemory: { name: "memory", value: "64MiB" },
          leaveGraceMs: leaveGrace,
          forget: () => letGo(http),
        }),
      );
    });
    after(() => undo.disposeAsync());

    if (kind === "disk" && executes)
      test("a node that is asked to executes actions", () => {
        ok(lab.capabilities.executionCapabilities?.execEnabled, said.join("\n"));
      });
    for (const one of cacheCases) play(one, () => lab);
    if (kind === "disk" && executes) for (const one of executionCases) play(one, () => lab);
  });

describe("a node that is killed with -9", { skip: !executes && "needs linux: the sandbox", timeout: 120_000 }, () => {
  const undo = new AsyncDisposableStack();
  let lab: Lab;

  before(async () => {
    const actionsIn = await folder(undo);
    const program = await Program.open(await folder(undo), actionsIn);
    undo.defer(() => program.stop());
    const crash = async (): Promise<void> => {
      await program.kill();
      await program.start();
    };
    lab = undo.use(await openLab({ target: program.address, crash }));
  });
  after(() => undo.disposeAsync());

  for (const one of crashCases) play(one, () => lab);
});

/** By item and title, with the reason: what cannot run somewhere. Everything else that is skipped has failed. */
const mayBeSkipped: ReadonlyMap<string, string> = new Map([]);

function play({ item, title, run }: Case, lab: () => Lab): void {
  test(`${item}: ${title}`, { timeout: 60_000 }, async (context) => {
    try {
      await run(lab());
    } catch (error) {
      if (!(error instanceof Skip)) throw error;
      const reason = mayBeSkipped.get(`${item}: ${title}`);
      ok(reason !== undefined, `nothing is left out against a node of ours, and this was: ${error.message}`);
      context.skip(`${error.message}: ${reason}`);
    }
  });
}

/** Other users can enter it, because actions run as such. */
async function folder(undo: AsyncDisposableStack): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "millrace-conformance-"));
  undo.defer(() => clearAway(path));
  chmodSync(path, 0o711);
  const inner = join(path, "in");
  mkdirSync(inner, { mode: 0o711 });
  return inner;
}

/** The store counts in seconds, and keeps what was used in the current one. */
async function letGo(http: string): Promise<void> {
  // The store has a clock of its own, which may be a moment behind this one.
  const second = (): number => Math.floor((Date.now() - 200) / 1_000);
  const used = Math.floor(Date.now() / 1_000);
  await until("it is not the same second any more", () => second() > used);
  const headers = Object.fromEntries(bearer("tender"));
  const { status } = await fetch(`${http}/v1/build-cache/gc?downTo=0`, { method: "POST", headers });
  if (status !== 200) throw new Error(`the store was not emptied: ${status}`);
}

async function fileServer(): Promise<{ readonly server: Server; readonly url: string }> {
  const server = createServer((request, response) => {
    const known = request.url?.startsWith("/hello.txt") ?? false;
    response.writeHead(known ? 200 : 404).end(known ? "hello, asset\n" : "");
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}
