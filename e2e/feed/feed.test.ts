// The event feed and webhooks on real processes: nodes are killed with kill -9 while they are followed.
import { deepEqual, equal, ok } from "node:assert/strict";
import { createHmac } from "node:crypto";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import type { EventItem } from "#api/events.ts";
import { clearAway } from "#testing/clear-away.ts";
import { cliLine } from "#testing/cli-line.ts";
import { until } from "#testing/until.ts";
import { byShard, everything, FeedFollower, NodeProcess, openReceiver } from "./nodes.ts";

const folder = await mkdtemp(join(tmpdir(), "millrace-feed-"));
after(() => clearAway(folder));

const secret = "0123456789abcdef";
const common = [
  "edge.listen=127.0.0.1:0",
  "cluster.ownerLease=1s",
  "webhooks.http=true",
  "webhooks.privateAddresses=true",
];
const ended = (items: readonly EventItem[]): number =>
  new Set(items.filter(({ kind, change }) => kind === "job" && change === "ended").map(({ id }) => id)).size;

async function submit(data: string): Promise<void> {
  const { code, notes } = await cliLine(data, "job", "submit", "--data", data, "--", "true");
  equal(code, 0, notes.join());
}

describe("the event feed of real nodes", { timeout: 180_000 }, () => {
  test("has no gap for who follows it while the node is killed; webhooks are tried until they are taken", async () => {
    const node = new NodeProcess(join(folder, "one"), [...common, "cluster.shards=2", "worker.slots=2"]);
    await node.start();
    const receiver = await openReceiver();
    const follower = new FeedFollower(() => node);
    after(async () => {
      await follower.stop();
      await node.kill();
      receiver.close();
    });
    const file = join(folder, "secret");
    await writeFile(file, secret);
    const added = await cliLine(node.data, "webhook", "add", "chat", receiver.url, "--secret-file", file);
    equal(added.code, 0, added.notes.join());
    await submit(node.data);
    await until("both heard of it", () => ended(follower.items) === 1 && receiver.received.length >= 2, {
      limitMs: 60_000,
    });
    receiver.answers.status = 503;
    await submit(node.data);
    await until("the receiver refused it", () => receiver.received.some(({ status }) => status === 503), {
      limitMs: 60_000,
    });
    await node.kill();
    await node.start();
    await submit(node.data);
    receiver.answers.status = 200;
    const taken = (): readonly string[] => [
      ...new Set(receiver.received.filter(({ status }) => status === 200).map(({ id }) => id)),
    ];
    await until("all is told", () => ended(follower.items) === 3 && taken().length === 6, { limitMs: 60_000 });
    ok(follower.connections >= 2);
    deepEqual(byShard(follower.items), byShard((await everything(node)).items));
    for (const { body, signature } of receiver.received)
      equal(signature, `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`);
    const shown = await cliLine(node.data, "webhook", "list");
    ok(/chat +ok +\d+ +0 /.test(shown.out[1] ?? ""), shown.out.join("\n"));
    const tested = await cliLine(node.data, "webhook", "test", "chat");
    deepEqual(tested.out, ["taken (200)"]);
  });
});
