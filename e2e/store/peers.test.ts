/** Nodes of a mesh over one tier: blobs of another node come from there, verified, and all others from the tier. */
import { equal, match, ok } from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { clearAway } from "#testing/clear-away.ts";
import { freePort } from "#testing/free-port.ts";
import { sharedPostgres } from "#testing/shared-postgres.ts";
import { until } from "#testing/until.ts";
import { readBlob, writeBlob } from "./byte-stream.ts";
import { NodeProcess } from "./node-process.ts";

const timeout = 180_000;
const postgres = await sharedPostgres();
after(() => postgres.stop());
const { skip } = postgres;

async function figure(node: NodeProcess, series: string): Promise<number> {
  const text = await (await fetch(`http://${node.address}/metrics`, { headers: node.headers })).text();
  const line = text.split("\n").find((one) => one.startsWith(series));
  return Number(line?.split(" ").at(-1) ?? 0);
}

const fromPeers = (node: NodeProcess): Promise<number> => figure(node, 'millrace_tier_reads_total{from="peer"}');
const fromTier = (node: NodeProcess): Promise<number> =>
  figure(node, 'millrace_tier_calls_total{tier="directory",call="read",outcome="ok"}');

test(
  "a blob comes from the node that has it; from the tier when that node's copy is corrupt or gone",
  { skip, timeout },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "millrace-peers-"));
    try {
      const shared = join(folder, "shared");
      mkdirSync(shared);
      const secretFile = join(folder, "cluster.secret");
      writeFileSync(secretFile, `${randomBytes(16).toString("hex")}\n`, { mode: 0o600 });
      const url = await postgres.server().freshDatabase();
      const seed = `127.0.0.1:${await freePort()}`;
      const tier = { kind: "directory", directory: shared, names: { kind: "postgres", url } };
      const config = (name: string, listen: string) => ({
        node: { name, listen: [`tcp:127.0.0.1:0`] },
        cluster: { shards: 4, secretFile },
        journal: { kind: "postgres", url },
        mesh: { listen, join: [seed], profile: "local" },
        blobs: { kind: "disk", authoritative: { ...tier, peers: {} } },
      });
      await using one = await NodeProcess.open(join(folder, "one"), config("one", seed));
      await using two = await NodeProcess.open(join(folder, "two"), config("two", `127.0.0.1:${await freePort()}`));
      const sees = async (): Promise<boolean> => {
        const answer = await (await fetch(`http://${two.address}/peers`, { headers: two.headers })).json();
        const { peers } = answer as { peers: { name: string; state: string; tags: Record<string, string> }[] };
        return peers.some(
          ({ name, state, tags }) => name === "one" && state === "alive" && tags["edge"] === one.address,
        );
      };
      await until("one sees the other", sees, { limitMs: 60_000, everyMs: 100 });

      const values = [randomBytes(200_000), randomBytes(3_000_000), randomBytes(400_000), randomBytes(500_000)];
      const [first, second, third, fourth] = values as [Buffer, Buffer, Buffer, Buffer];
      const digests = [];
      for (const value of values) digests.push(await writeBlob(one.client, value));
      ok((await readBlob(two.client, digests[0]!)).equals(first));
      ok((await readBlob(two.client, digests[1]!)).equals(second));
      equal(await fromPeers(two), 2);
      equal(await fromTier(two), 0);
      ok((await readBlob(two.client, digests[1]!)).equals(second), "kept");
      equal(await fromPeers(two), 2);

      spoil(join(folder, "one", "blobs", "files"), third.length);
      ok((await readBlob(two.client, digests[2]!)).equals(third), "its copy was wrong: the tier's is not");
      equal(await fromPeers(two), 2);
      equal(await fromTier(two), 1);

      equal(await cachedAt(one, digests[3]!.hash), 200);
      equal(await cachedAt(two, digests[3]!.hash), 504, "a node that asks another is not asked on in turn");

      await one.kill();
      ok((await readBlob(two.client, digests[3]!)).equals(fourth), "it is gone: the tier is there");
      equal(await fromTier(two), 2);
      match(two.log, /is up/);
    } finally {
      clearAway(folder);
    }
  },
);

const cachedAt = async ({ address }: NodeProcess, hash: string): Promise<number> => {
  const answer = await fetch(`http://${address}/cas/${hash}`, { headers: { "cache-control": "only-if-cached" } });
  await answer.arrayBuffer();
  return answer.status;
};

/** Like a failing disk: one byte of the only file of that size is changed. */
function spoil(folder: string, sizeBytes: number): void {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => join(folder, name));
  const [path, ...more] = files.filter((file) => statSync(file).isFile() && statSync(file).size === sizeBytes);
  if (path === undefined || more.length > 0) throw new Error("the file to spoil is not there");
  const bytes = readFileSync(path);
  bytes[1_000] = (bytes[1_000] ?? 0) ^ 1;
  writeFileSync(path, bytes);
}
