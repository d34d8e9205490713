/** Nodes that reach each other over TCP with the cluster's secret. */
import { equal, match, ok, rejects } from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { isFault } from "#base/fault.ts";
import { sharedPostgres } from "#testing/shared-postgres.ts";
import { until } from "#testing/until.ts";
import { clusterSecret } from "./cluster-secret.ts";
import { startNode, type Running } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "./data-folder.ts";
import { connectTo } from "#app/testing/remote.ts";

const postgres = await sharedPostgres();
after(() => postgres.stop());

const patience = { limitMs: 60_000, everyMs: 50 };

test("a secret is one line of some length, and is never shown", async () => {
  const folder = await mkdtemp(join(tmpdir(), "millrace-secret-"));
  try {
    const file = join(folder, "secret");
    await writeFile(file, "0123456789abcdef\n");
    equal(await clusterSecret(file), "0123456789abcdef");
    equal(await clusterSecret(undefined), undefined);
    for (const wrong of ["short-one", "two lines\nof a secret that is long", ""]) {
      await writeFile(file, wrong);
      await rejects(clusterSecret(file), (error) => {
        ok(isFault(error, "invalid") && (wrong === "" || !error.message.includes(wrong.slice(0, 5))));
        return true;
      });
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});

test(
  "nodes that share it answer for each other over TLS; one with another is not heard",
  {
    skip: postgres.skip,
    timeout: 120_000,
  },
  async () => {
    const url = await postgres.server().freshDatabase();
    const folder = await mkdtemp(join(tmpdir(), "millrace-secret-"));
    const nodes: Running[] = [];
    const log: string[] = [];
    const start = async (name: string, secret: string): Promise<Running> => {
      const secretFile = join(folder, `${name}-secret`);
      await writeFile(secretFile, secret);
      const config = Config.parse({
        cluster: { shards: 4, secretFile, ownerLease: "3s" },
        node: { name, listen: ["tcp:127.0.0.1:0"], stopWithin: "1s" },
        edge: { listen: [] },
        journal: { kind: "postgres", url },
        blobs: { kind: "directory", directory: folder },
        worker: { enabled: false },
      });
      const node = await startNode(config, dataFolder(join(folder, name)), { log: (line) => log.push(line) });
      nodes.push(node);
      return node;
    };
    const served = ({ node }: Running): number =>
      node.status().shards.filter(({ phase }) => phase === "serving").length;
    try {
      const secret = "the same on all nodes, 32 letters".replaceAll(" ", "-");
      const one = await start("one", secret);
      const two = await start("two", secret);
      await until("they share the shards", () => served(one) === 2 && served(two) === 2, patience);
      match(two.node.address, /^tcp:127\.0\.0\.1:\d+$/);
      for (const { client } of [one, two])
        for (let shard = 0; shard < 4; shard += 1) equal((await client.stats(shard)).shard, shard);
      const stranger = await start("stranger", "another-secret-altogether");
      const theirs = one.node.status().shards.find(({ phase }) => phase === "serving")?.shard ?? 0;
      await rejects(stranger.client.stats(theirs, { deadlineMs: 2_000 }), (error) => isFault(error));
    } finally {
      for (const node of nodes) await node.stop();
      await rm(folder, { recursive: true, force: true });
    }
  },
);

test("without a shared secret, TCP on this machine is for the owner of the data folder alone", async () => {
  const path = await mkdtemp(join(tmpdir(), "millrace-secret-"));
  const config = Config.parse({
    cluster: { shards: 1 },
    node: { listen: ["tcp:127.0.0.1:0"] },
    edge: { listen: [] },
    journal: { kind: "memory" },
    blobs: { kind: "memory" },
  });
  const node = await startNode(config, dataFolder(path), { log: () => {} });
  try {
    const { address } = node.node;
    for (const secret of [undefined, "another-secret-altogether"]) {
      await using stranger = connectTo(address, { deadlineMs: 1_000, secret });
      await rejects(stranger.work.jobs({ limit: 1 }), (error) => isFault(error));
    }
    await using owner = connectTo(address, { secret: node.owner });
    equal((await owner.work.jobs({ limit: 1 })).jobs.length, 0);
  } finally {
    await node.stop();
    await rm(path, { recursive: true });
  }
});
