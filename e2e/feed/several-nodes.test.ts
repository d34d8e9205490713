// The event feed of two nodes on one PostgreSQL, which reach each other over TCP: each has what the other's shards do,
// and goes on without a gap when the other is killed.
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { clearAway } from "#testing/clear-away.ts";
import { cliLine } from "#testing/cli-line.ts";
import { sharedPostgres } from "#testing/shared-postgres.ts";
import { until } from "#testing/until.ts";
import { byShard, everything, FeedFollower, NodeProcess, shardOf } from "./nodes.ts";

const postgres = await sharedPostgres();
const folder = await mkdtemp(join(tmpdir(), "millrace-feed-nodes-"));
after(async () => {
  await postgres.stop();
  clearAway(folder);
});

const shards = 4;
const patience = { limitMs: 120_000 };

type Cluster = { readonly shards: readonly { readonly shard: number; readonly owner?: string }[] };

async function ownersAt({ url, headers }: NodeProcess): Promise<ReadonlyMap<string, number>> {
  const answer = await fetch(`${url}/v1/cluster`, { headers });
  const counts = new Map<string, number>();
  for (const { owner } of ((await answer.json()) as Cluster).shards)
    if (owner !== undefined) counts.set(owner, (counts.get(owner) ?? 0) + 1);
  return counts;
}

describe("the event feed on PostgreSQL", { skip: postgres.skip, timeout: 300_000 }, () => {
  test("is the same on every node, over TCP, and has no gap when an owner is killed", async () => {
    const [secret, shared] = [join(folder, "secret"), join(folder, "shared")];
    await mkdir(shared);
    await writeFile(secret, "stones-and-water-and-wheels\n", { mode: 0o600 });
    const settings = [
      "edge.listen=127.0.0.1:0",
      "node.listen=tcp:127.0.0.1:0",
      `cluster.secretFile=${secret}`,
      `cluster.shards=${shards}`,
      "cluster.ownerLease=2s",
      "journal.kind=postgres",
      `journal.url=${postgres.server().url()}`,
      "worker.slots=2",
      "blobs.authoritative.kind=directory",
      `blobs.authoritative.directory=${shared}`,
      "blobs.authoritative.names.kind=postgres",
      `blobs.authoritative.names.url=${postgres.server().url()}`,
    ];
    const nodes = ["a", "b"].map((name) => new NodeProcess(join(folder, name), [...settings, `node.name=${name}`]));
    const [a, b] = nodes as [NodeProcess, NodeProcess];
    const follower = new FeedFollower(() => a);
    after(async () => {
      await follower.stop();
      for (const node of nodes) await node.kill();
    });
    await a.start();
    await b.start();
    await until("each owns half", async () => String([...(await ownersAt(a)).values()]) === "2,2", patience);
    const submit = async (node: NodeProcess, count: number): Promise<void> => {
      for (let i = 0; i < count; i += 1) {
        const { code, notes } = await cliLine(node.data, "job", "submit", "--data", node.data, "--", "true");
        equal(code, 0, notes.join());
      }
    };
    const ended = (): number =>
      new Set(follower.items.filter(({ kind, change }) => kind === "job" && change === "ended").map(({ id }) => id))
        .size;
    let jobs = 0;
    // Jobs are spread by chance: until each shard has had one.
    while (new Set(follower.items.map(shardOf)).size < shards) {
      ok((jobs += 2) <= 60, "a shard has no job after sixty");
      await submit(b, 2);
      await until("a reader at one node has heard of all jobs", () => ended() === jobs, patience);
    }
    const early = await everything(b);
    await submit(b, 1);
    await b.kill();
    await until("the other owns all", async () => String([...(await ownersAt(a)).values()]) === "4", patience);
    await submit(a, 2);
    jobs += 3;
    await until("nothing is missing", () => ended() === jobs, patience);
    const late = await everything(a, early.next);
    await b.start();
    const [{ items: there }, { items: here }] = [await everything(b), await everything(a)];
    deepEqual(byShard(there), byShard(here));
    deepEqual(byShard(follower.items), byShard(here));
    equal(early.items.length + late.items.length, here.length, "a cursor of the dead owner goes on elsewhere");
    deepEqual(byShard([...early.items, ...late.items]), byShard(here));
    match(await (await fetch(`${a.url}/metrics`, { headers: a.headers })).text(), /^millrace_feed_lag_batches \d+$/m);
  });
});
