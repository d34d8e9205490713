/** Queries of two tenants on one fleet, priorities of one, and a query that a schedule starts. */
import { equal, ok } from "node:assert/strict";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { NodeProcess } from "#e2e/store/node-process.ts";
import { sqliteJournal } from "#journal/sqlite/sqlite.ts";
import { watchedRecords } from "#records/watch.ts";
import { schedulesIn } from "#schedules/schedule.ts";
import { clearAway } from "#testing/clear-away.ts";
import { realClock } from "#testing/real-clock.ts";
import { until } from "#testing/until.ts";
import { newFolder, writeEvents } from "./lab.ts";

const folder = await newFolder();
await writeEvents(folder, { files: 40, rows: 10_000 });
const data = join(folder, "data");
const node = await NodeProcess.open(data, { cluster: { shards: 1 }, worker: { slots: 2 } });
after(async () => {
  await node[Symbol.asyncDispose]();
  clearAway(folder);
});

type View = { readonly phase: string; readonly ended: boolean; readonly done: number; readonly tasks: number };

async function ask<T>(method: string, path: string, body?: object): Promise<T> {
  const headers = { ...node.headers, "content-type": "application/json" };
  const response = await fetch(`http://${node.address}${path}`, {
    method,
    headers,
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
  return JSON.parse(text || "{}") as T;
}

const key = `${"md5(".repeat(12)}country || ms${")".repeat(12)}`;
/** A task for each file, each of which takes a while. */
const staged = { splitBytes: 1, broadcastBytes: 1, reduceBytes: 1e9, partitions: 2, fresh: true, folder };
const long = { ...staged, sql: `select ${key} as k, count(*) as n from 'events-*.parquet' group by k` };
const short = { ...staged, sql: `select ${key} as k, count(*) as n from 'events-1.parquet' group by k` };

const tenantOf = new Map<string, string>();

async function submit(tenant: string, document: object, priority = 0): Promise<string> {
  const { job } = await ask<{ job: string }>("POST", `/v1/jobs?tenant=${tenant}`, {
    door: "batch",
    document,
    priority,
  });
  tenantOf.set(job, tenant);
  return job;
}

const view = (job: string): Promise<View> =>
  ask("GET", `/v1/batch/queries/${job}?tenant=${tenantOf.get(job) ?? "default"}`);
async function ended(job: string): Promise<View> {
  let seen: View | undefined;
  const isOver = async (): Promise<boolean> => (seen = await view(job)).ended;
  await until(`${job} has ended`, isOver, { limitMs: 120_000, everyMs: 20 });
  equal(seen?.phase, "SUCCEEDED");
  return seen;
}
const begun = (job: string): Promise<void> =>
  until("some of its tasks are done", async () => (await view(job)).done >= 4, { limitMs: 120_000, everyMs: 20 });

describe("queries on one fleet", { timeout: 400_000 }, () => {
  test("of a tenant with a short one do not wait for all of another's long one", async () => {
    const first = await submit("big", long);
    await begun(first);
    await ended(await submit("small", short));
    const { done, tasks, ended: isOver } = await view(first);
    ok(!isOver && done < tasks, `${done} of ${tasks} tasks of the long query were done before`);
    await ended(first);
  });

  test("of one tenant run by their priority", async () => {
    const first = await submit("big", long);
    await begun(first);
    await ended(await submit("big", short, 50));
    equal((await view(first)).ended, false);
    await ask("POST", `/v1/jobs/${first}/cancel?tenant=big`, {});
  });

  test("are started by a schedule, each instant once", async () => {
    const document = JSON.stringify({ ...short, sql: "select count(*) as n from 'events-*.parquet'" });
    const schedule = { cron: "* * * * *", catchUp: "once", door: "batch", document };
    await ask("PUT", "/v1/schedules/nightly", schedule);
    await node.stop();
    // As if no node had run for ten minutes.
    const journal = sqliteJournal({ directory: join(data, "journal") });
    const schedules = schedulesIn(watchedRecords(journal.records, realClock));
    await schedules.update("default", "nightly", (was) => ({ ...was, settledMs: was.settledMs - 600_000 }));
    await journal.close();
    await node.start();
    const jobs = async (): Promise<readonly string[]> => {
      const { items: all } = await ask<{ items: readonly { job: string }[] }>(
        "GET",
        "/v1/jobs?tenant=default&door=batch",
      );
      return all.map(({ job }) => job);
    };
    await until("the schedule has started a query", async () => (await jobs()).length > 0, { limitMs: 120_000 });
    await ask("DELETE", "/v1/schedules/nightly");
    const [job = ""] = await jobs();
    await ended(job);
  });
});
