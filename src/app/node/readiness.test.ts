import { deepEqual, equal, match } from "node:assert/strict";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { ManualClock } from "#base/testing/manual-clock.ts";
import { GrpcClient } from "#grpc/client.ts";
import { connectH2 } from "#h2/client.ts";
import type { ShardReach } from "#shard/keeper/keeper.ts";
import type { NodeStatus } from "#shard/node-status.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";
import { Health } from "#wire/generated/grpc/health/v1/health.ts";
import { startNode, type Running } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "./data-folder.ts";
import { Readiness } from "./readiness.ts";
import { systemClock as clock } from "#door/system-clock.ts";

async function running(given: Record<string, unknown>, look: (running: Running) => Promise<void>): Promise<void> {
  const path = await mkdtemp(join(tmpdir(), "millrace-ready-"));
  const config = Config.parse({ edge: { listen: ["127.0.0.1:0"] }, worker: { enabled: false }, ...given });
  const node = await startNode(config, dataFolder(path), { log: () => {} });
  try {
    await look(node);
  } finally {
    await node.stop();
    clearAway(path);
  }
}

async function ask({ edgePorts: [port = 0] }: Running, path: string): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`);
  return `${response.status} ${await response.text()}`;
}

async function grpcHealth({ edgePorts: [port = 0] }: Running): Promise<number> {
  const client = new GrpcClient({
    clock,
    authority: "x",
    connect: () => connectH2({ host: "127.0.0.1", port, clock }),
  });
  const { status } = await client.unary(Health.methods.check, { service: "" });
  client.close();
  return status;
}

const serving = 1;
const notServing = 2;

describe("a node is ready when it can take work", { timeout: 60_000 }, () => {
  test("with all its shards served; then /readyz, /livez and gRPC health agree", async () => {
    await running({}, async (node) => {
      await until("it is ready", async () => (await ask(node, "/readyz")) === "200 ready\n");
      equal(node.node.keeper.reach(8).reachable, 8);
      equal(await grpcHealth(node), serving);
      await node.node.leave();
      match(await ask(node, "/readyz"), /^503 not ready\nnode: it is draining/);
    });
  });

  test("not with a nearly full disk, but it is still alive", async () => {
    await running({ node: { diskFreeMin: "1000TiB" } }, async (node) => {
      await until("only the disk is left", async () => !(await ask(node, "/readyz")).includes("shards:"));
      match(await ask(node, "/readyz"), /^503 not ready\ndisk: [\d.]+[KMGT]iB free, needs 1000TiB\n$/);
      equal(await ask(node, "/livez"), "200 alive\n");
      equal(await ask(node, "/healthz"), "200 alive\n");
      equal(await grpcHealth(node), notServing);
    });
  });

  test("not without its journal, nor without a shard", async () => {
    await running({ cluster: { ownerLease: "500ms" }, journal: { kind: "memory" } }, async (node) => {
      await until("it is ready", async () => (await ask(node, "/readyz")) === "200 ready\n");
      await node.journal.close();
      await until("it is not", async () => (await ask(node, "/readyz")).includes("journal: no answer for"));
      await until("no shard is served", async () => (await ask(node, "/readyz")).includes("shards: 0 of 8 have"));
      equal(await ask(node, "/livez"), "200 alive\n");
    });
  });
});

describe("readiness", () => {
  async function looking(look: (world: World, readiness: Readiness, manual: ManualClock) => Promise<void>) {
    const folder = await mkdtemp(join(tmpdir(), "millrace-ready-"));
    const manual = new ManualClock();
    const world: World = {
      state: "up",
      reach: { shards: 4, reachable: 4, troubled: 0, lookedMono: manual.monotonicMs() },
      folder,
    };
    const readiness = await Readiness.start({
      clock: manual,
      state: () => world.state,
      reach: () => world.reach,
      dataFolder: folder,
      otherFolders: [],
      freeBytesMin: 1,
      journalMsMax: 1_000,
    });
    try {
      await look(world, readiness, manual);
    } finally {
      await readiness[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    }
  }
  type World = { state: NodeStatus["state"]; reach: ShardReach; readonly folder: string };

  test("waits at first for all shards, but not for those that cannot be read", async () => {
    await looking(async (world, readiness) => {
      world.reach = { ...world.reach, reachable: 2, troubled: 1 };
      deepEqual(readiness.notReady(), ["shards: 2 of 4 have an owner, 1 cannot be read"]);
      world.reach = { ...world.reach, reachable: 3, troubled: 1 };
      deepEqual(readiness.notReady(), []);
    });
  });

  test("stays ready while the shards of another node wait for an owner, unless all do", async () => {
    await looking(async (world, readiness) => {
      deepEqual(readiness.notReady(), []);
      world.reach = { ...world.reach, reachable: 1 };
      deepEqual(readiness.notReady(), []);
      world.reach = { ...world.reach, reachable: 0 };
      deepEqual(readiness.notReady(), ["shards: 0 of 4 have an owner, 0 cannot be read"]);
    });
  });

  test("not without the data folder, and again with it; no path is shown", async () => {
    await looking(async (world, readiness, manual) => {
      const sees = (what: string): Promise<void> =>
        until(`it sees: ${what}`, async () => {
          await manual.advance(2_000);
          world.reach = { ...world.reach, lookedMono: manual.monotonicMs() };
          return readiness.notReady().join() === what;
        });
      await rm(world.folder, { recursive: true });
      await sees("disk: it cannot be written (ENOENT)");
      await mkdir(world.folder);
      await sees("");
    });
  });

  test("reports all problems at once", async () => {
    await looking(async (world, readiness, manual) => {
      world.state = "leaving";
      world.reach = { ...world.reach, reachable: 0 };
      await manual.advance(5_000);
      deepEqual(
        readiness.notReady().map((why) => why.split(":")[0]),
        ["node", "journal", "shards"],
      );
    });
  });
});
