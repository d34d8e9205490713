import { equal, match, ok, rejects } from "node:assert/strict";
import { mkdir, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { isFault } from "#base/fault.ts";
import { startNode } from "./compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { followJob, showJob } from "#app/job-view.ts";
import { connectTo } from "#app/testing/remote.ts";
import { orderFromCommand } from "#app/job-order.ts";
import { clearAway } from "#testing/clear-away.ts";
import { sharedPostgres } from "#testing/shared-postgres.ts";
import { until } from "#testing/until.ts";

test("a node in memory takes a job from a client that knows only its socket, and runs it", async () => {
  const path = await mkdtemp(join(tmpdir(), "millrace-node-"));
  const edge = { listen: [] };
  const config = Config.parse({ cluster: { shards: 3 }, journal: { kind: "memory" }, blobs: { kind: "memory" }, edge });
  const running = await startNode(config, dataFolder(path), { log: () => {} });
  try {
    await rejects(startNode(config, dataFolder(path), { log: () => {} }), (e) => isFault(e, "exhausted"));
    await using remote = connectTo(running.node.address);
    const order = orderFromCommand(["/bin/sh", "-c", "echo $MILLRACE_TASK $SECRET"], { tenant: "t", key: "once" });
    const { jobId, created } = await remote.work.submit(order);
    ok(created);
    equal((await remote.work.submit(order)).created, false);
    const follower = followJob(jobId);
    for await (const message of remote.work.watch(jobId, new AbortController().signal)) follower.lines(message);
    equal(follower.phase, "SUCCEEDED");
    const { view } = await remote.work.job(jobId);
    match(view.tasks[0]?.result?.payload ?? "", /"tail":"t[0-9a-z]+-1\\n"/);
    match(showJob(jobId, view, 0)[0] ?? "", /SUCCEEDED/);
    equal((await remote.work.jobs({ limit: 10 })).jobs[0]?.jobId, jobId);
    equal((await remote.work.shards()).length, 3);
    equal((await remote.status()).state, "up");
  } finally {
    await running.stop();
    clearAway(path);
  }
});

describe("two nodes share a journal: either answers for both, and work goes on when one leaves", async () => {
  const postgres = await sharedPostgres();
  after(() => postgres.stop());

  test("SQLite", { timeout: 120_000 }, async () =>
    withRoot((root) => twoNodes(root, { kind: "sqlite", directory: join(root, "journal") })),
  );
  test("PostgreSQL", { timeout: 120_000, skip: postgres.skip }, async () => {
    const url = await postgres.server().freshDatabase();
    await withRoot((root) => twoNodes(root, { kind: "postgres", url }));
  });
  test("not if each keeps its blobs to itself", { timeout: 120_000, skip: postgres.skip }, async () => {
    const url = await postgres.server().freshDatabase();
    await withRoot((root) => oneAlone(root, { kind: "postgres", url }));
  });
});

async function withRoot(body: (root: string) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), "millrace-two-"));
  try {
    await body(root);
  } finally {
    clearAway(root);
  }
}

async function oneAlone(root: string, journal: object): Promise<void> {
  const config = Config.parse({ journal, edge: { listen: [] }, worker: { enabled: false } });
  const said: string[] = [];
  const log = (line: string): void => void said.push(line);
  const one = await startNode(config, dataFolder(join(root, "one")), { log });
  try {
    match(said.join("\n"), /the only one of its journal: .*blobs\.authoritative/);
    await until("it is there", async () => (await one.journal.nodes()).length === 1);
    await rejects(
      startNode(config, dataFolder(join(root, "two")), { log }),
      (error) => isFault(error, "invalid") && error.facts["node"] === one.name,
    );
    equal((await one.journal.nodes()).length, 1);
  } finally {
    await one.stop();
  }
  await (await startNode(config, dataFolder(join(root, "two")), { log })).stop();
}

async function twoNodes(root: string, journal: object): Promise<void> {
  await mkdir(join(root, "blobs"));
  const config = Config.parse({
    cluster: { shards: 6, ownerLease: "3s" },
    journal,
    blobs: { kind: "directory", directory: join(root, "blobs") },
    node: { stopWithin: "100ms" },
    edge: { listen: [] },
    worker: { slots: 2 },
  });
  await using stack = new AsyncDisposableStack();
  const one = await startNode(config, dataFolder(join(root, "one")), { log: () => {} });
  let stopped = false;
  stack.defer(async () => (stopped ? undefined : await one.stop()));
  const two = await startNode(config, dataFolder(join(root, "two")), { log: () => {} });
  stack.defer(() => two.stop());
  await until("both own shards", async () => {
    const owners = new Set((await two.journal.ownerships()).map(({ owner }) => owner));
    return owners.has(one.name) && owners.has(two.name);
  });
  await using viaTwo = connectTo(two.node.address, { deadlineMs: 30_000 });
  const orders = Array.from({ length: 12 }, () => orderFromCommand(["sleep", "0.2"], { tenant: "t" }));
  const jobs = await Promise.all(orders.map((order) => viaTwo.work.submit(order)));
  ok(new Set(jobs.map(({ jobId }) => jobId.split("-")[0])).size > 2, "the jobs are spread over shards");
  stopped = true;
  await one.stop();
  for (const { jobId } of jobs) {
    const follower = followJob(jobId);
    for await (const message of viaTwo.work.watch(jobId, AbortSignal.timeout(60_000))) follower.lines(message);
    equal(follower.phase, "SUCCEEDED", jobId);
  }
  const { jobs: listed } = await viaTwo.work.jobs({ limit: 100 });
  equal(listed.length, jobs.length);
}
