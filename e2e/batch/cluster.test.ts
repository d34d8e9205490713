/** Two nodes over PostgreSQL and a bucket: one query, an engine that is stopped, a node that is killed. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Job } from "#doors/batch/api/batch.ts";
import { clearAway } from "#testing/clear-away.ts";
import { startPostgres } from "#testing/postgres.ts";
import { until } from "#testing/until.ts";
import { QueryCluster } from "./cluster-lab.ts";
import { enginesOf, slowQuery, stagedIn, tasksOf, viewOf, type View } from "./fault-lab.ts";
import { apiAsks, newFolder, writeEvents } from "./lab.ts";

const postgres = await startPostgres({ durable: false });
const folder = await newFolder();
const skip = postgres.skip || (process.platform === "linux" ? false : "needs Linux");

describe("a query on two nodes", { timeout: 180_000, skip }, () => {
  let cluster: QueryCluster;
  let clean: readonly string[] | undefined;
  const query = slowQuery(folder);
  const staged = stagedIn(folder);
  const view = (job: Job<object>): Promise<View> => viewOf(job, cluster.first);
  const done = async (job: Job<object>): Promise<number> => (await view(job)).stages[0]?.tasks ?? 0;
  before(async () => {
    await writeEvents(folder, { files: 12, rows: 40_000 });
    cluster = await QueryCluster.open(join(folder, "nodes"), await postgres.server().freshDatabase(), ["mill", "race"]);
    apiAsks(cluster.first.folder);
  });
  after(async () => {
    await cluster?.[Symbol.asyncDispose]();
    await postgres.stop();
    clearAway(folder);
  });

  test("runs on both, and what one wrote the other reads", async () => {
    const job = await query.submit(staged);
    await job.done();
    clean = (await view(job)).result;
    const results = (await tasksOf(job, cluster.first)).map(({ result = "" }) => result);
    const writers = results.flatMap((payload) => /"at":"(\w+)"/.exec(payload)?.[1] ?? []);
    deepEqual([...new Set(writers)].toSorted(), ["mill", "race"]);
  });

  test("goes on when an engine is stopped: the other node's attempt is quicker, with the same bytes", async () => {
    const job = await query.submit(staged);
    await until("some tasks are done", async () => (await done(job)) >= 4, { limitMs: 60_000, everyMs: 5 });
    const [stopped = 0] = enginesOf(join(folder, "nodes", "race"));
    ok(stopped > 0);
    process.kill(stopped, "SIGSTOP");
    const startedMs = performance.now();
    await job.done();
    ok(performance.now() - startedMs < 45_000, "it did not wait until the engine was taken for stuck");
    deepEqual((await view(job)).result, clean);
    ok((await tasksOf(job, cluster.first)).filter(({ attempts }) => attempts > 1).length <= 2);
    const gone = (): boolean => !enginesOf(join(folder, "nodes", "race")).includes(stopped);
    await until("the stopped engine is gone", gone, { limitMs: 60_000 });
  });

  test("goes on when a node is killed, and runs no committed task again", async () => {
    const job = await query.submit(staged);
    await until("half of the tasks are done", async () => (await done(job)) >= 6, { limitMs: 60_000, everyMs: 5 });
    await cluster.nodes[1]?.kill();
    const before = (await tasksOf(job, cluster.first)).filter(({ phase }) => phase === "SUCCEEDED");
    await job.done();
    const after = new Map((await tasksOf(job, cluster.first)).map(({ task, attempts }) => [task, attempts]));
    for (const { task, attempts } of before) equal(after.get(task), attempts);
    deepEqual((await view(job)).result, clean);
  });
});
