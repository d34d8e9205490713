/** Processes that are killed: the answer is the clean run's, byte for byte. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import type { Job } from "#doors/batch/api/batch.ts";
import { NodeProcess } from "#e2e/store/node-process.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";
import { enginesOf, slowQuery, stagedIn, tasksOf, viewOf, type View } from "./fault-lab.ts";
import { apiAsks, newFolder, writeEvents } from "./lab.ts";

const folder = await newFolder();
const oracle = await writeEvents(folder, { files: 8, rows: 40_000 });
const data = join(folder, "data");
const node = await NodeProcess.open(data, { cluster: { shards: 1 }, worker: { slots: 2 } });
after(async () => {
  await node[Symbol.asyncDispose]();
  clearAway(folder);
});
apiAsks(data);

const staged = stagedIn(folder);
const query = slowQuery(folder);
const view = (job: Job<object>): Promise<View> => viewOf(job, node);

/** Half of the first stage is committed, and not all of it. */
const halfDone = (job: Job<object>): Promise<void> =>
  until("half of the tasks are done", async () => ((await view(job)).stages[0]?.tasks ?? 0) >= 4, {
    limitMs: 60_000,
    everyMs: 5,
  });

describe("a query in stages", { timeout: 300_000 }, () => {
  let clean: readonly string[] | undefined;

  test("answers as one process does", async () => {
    const job = await query.submit(staged);
    const rows = await job.rows();
    clean = (await view(job)).result;
    const [counted] = (await oracle.runAndReadAll(`select count(*) from (${query.toSql()})`)).getRows();
    equal(String(rows.length), String(counted?.[0]));
  });

  test("whose engines are killed half way answers the same bytes", async () => {
    const job = await query.submit(staged);
    await halfDone(job);
    const pids = enginesOf(data);
    ok(pids.length > 0);
    for (const pid of pids) process.kill(pid, "SIGKILL");
    await job.done();
    deepEqual((await view(job)).result, clean);
  });

  test("whose node is killed half way answers the same bytes, and runs no committed task again", async () => {
    const job = await query.submit(staged);
    await halfDone(job);
    await node.kill();
    await node.start();
    const before = (await tasksOf(job, node)).filter(({ phase }) => phase === "SUCCEEDED");
    ok(before.length >= 4);
    await job.done();
    const after = new Map((await tasksOf(job, node)).map((task) => [task.task, task.attempts]));
    deepEqual(
      before.map(({ task }) => after.get(task)),
      before.map(({ attempts }) => attempts),
    );
    deepEqual((await view(job)).result, clean);
  });
});
