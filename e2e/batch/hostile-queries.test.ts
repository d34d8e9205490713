/** Files and SQL that mean harm, on a real node: each ends with an error that says why; others are served meanwhile. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { after, describe, test } from "node:test";
import { createGzip } from "node:zlib";
import { NodeProcess } from "#e2e/store/node-process.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";
import { enginesOf, type View } from "./fault-lab.ts";
import { newFolder, writeEvents } from "./lab.ts";

const MiB = 1024 * 1024;
const folder = await newFolder();
await writeEvents(folder, { files: 1, rows: 1_000 });
const data = join(folder, "data");
const batch = { taskMemory: "64MiB", packsMax: "64MiB" };
const node = await NodeProcess.open(data, { cluster: { shards: 1 }, worker: { slots: 2 }, batch });
after(async () => {
  await node[Symbol.asyncDispose]();
  clearAway(folder);
});

type Ended = View & { readonly phase: string; readonly ended: boolean; readonly failure?: string };
type More = { readonly tenant?: string; readonly splitBytes?: number };

async function ask<T>(path: string, body?: unknown): Promise<T> {
  const answer = await fetch(`http://${node.address}${path}`, {
    headers: { ...node.headers, ...(body !== undefined && { "content-type": "application/json" }) },
    ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
  });
  return (await answer.json()) as T;
}

async function submit(sql: string, { tenant = "default", ...more }: More = {}): Promise<string> {
  const document = { sql, folder, fresh: true, ...more };
  return (await ask<{ job: string }>(`/v1/jobs?tenant=${tenant}`, { door: "batch", document })).job;
}

async function ended(job: string, { tenant = "default" }: More = {}, limitMs = 60_000): Promise<Ended> {
  let view: Ended | undefined;
  const isOver = async (): Promise<boolean> =>
    (view = await ask<Ended>(`/v1/batch/queries/${job}?tenant=${tenant}`)).ended;
  await until(`${job} has ended`, isOver, { limitMs, everyMs: 20 });
  ok(view);
  return view;
}

const run = async (sql: string, more: More = {}): Promise<Ended> => await ended(await submit(sql, more), more);

async function fails(sql: string, why: RegExp): Promise<void> {
  const { phase, failure = "" } = await run(sql);
  equal(phase, "FAILED", sql);
  match(failure, why);
}

const figure = async (name: string): Promise<number> => {
  const text = await (await fetch(`http://${node.address}/metrics`, { headers: node.headers })).text();
  return Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1] ?? 0);
};

describe("a query that means harm", { timeout: 300_000 }, () => {
  test("reads, writes and loads nothing beside its files", async () => {
    await writeFile(join(folder, "secret.csv"), "a\nsecret\n");
    for (const [sql, why] of [
      ["select * from read_text('/etc/hostname')", /disabled by configuration|read_text/],
      ["select * from glob('/etc/*')", /disabled by configuration|glob/],
      [
        "select * from read_parquet('http://127.0.0.1:9/x.parquet')",
        /files of the node and s3:.* are read, nothing else/,
      ],
      ["copy (select 1) to 'out.csv'", /SELECT/i],
      ["install httpfs; select 1", /SELECT/i],
      ["attach 'x.db'", /SELECT/i],
      ["select 1; select 2", /one SELECT/],
      ["select * from sqlite_scan('x.db', 't')", /sqlite_scan/],
      ["select getenv('HOME')", /getenv/],
    ] as const)
      await fails(sql, why);
  });

  test("that runs out of memory is given more, on a real node", async () => {
    const before = await figure("millrace_batch_out_of_memory_total");
    const { phase, failure } = await run("select max(len(l)) as n from (select list(i) as l from range(8000000) t(i))");
    deepEqual([phase, failure], ["SUCCEEDED", undefined]);
    ok((await figure("millrace_batch_out_of_memory_total")) > before);
  });

  test("makes no value of gigabytes", async () => {
    await fails(
      "select length(repeat('x' || range, 3000000000)) as n from range(2)",
      /memory|string|large|size|exceed/i,
    );
  });

  test("fills no disk by unpacking", async () => {
    const bomb = join(folder, "bomb.csv");
    const line = `${"0".repeat(1023)}\n`;
    const file = createWriteStream(bomb);
    for (let i = 0; i < 96; i += 1) file.write(line.repeat(1024));
    await new Promise((resolve) => file.end(resolve));
    await pipeline(createReadStream(bomb), createGzip({ level: 1 }), createWriteStream(`${bomb}.gz`));
    // All of it sorted is more than the node lends a task of disk.
    const { phase, failure = "" } = await run(
      "select a || i as x from (select column0 as a, row_number() over () as i " +
        "from read_csv('bomb.csv.gz', header=false)) order by md5(x)",
    );
    if (phase === "FAILED") match(failure, /max_temp_directory_size|space|memory/i);
    equal((await run("select count(*) as n from 'events-0.parquet'")).phase, "SUCCEEDED");
  });

  test("over five thousand tiny files needs few tasks", async () => {
    await mkdir(join(folder, "tiny"));
    for (let from = 0; from < 5_000; from += 500)
      await Promise.all(
        Array.from({ length: 500 }, (_, i) => writeFile(join(folder, "tiny", `${from + i}.csv`), `a\n${from + i}\n`)),
      );
    const { phase, failure, stages } = await run("select sum(a) as s from 'tiny/*.csv'", { splitBytes: 64 * MiB });
    deepEqual([phase, failure], ["SUCCEEDED", undefined]);
    equal(
      stages.reduce((all, { tasks }) => all + tasks, 0),
      1,
    );
  });

  test("that never ends is stopped at once, and others are served meanwhile", async () => {
    const endless = await submit(
      "select count(*) as n from range(1000000) a, range(1000000) b where a.range + b.range = -1",
    );
    await until("it runs", () => enginesOf(data).length > 0, { limitMs: 60_000 });
    for (let i = 0; i < 3; i += 1) {
      const { phase } = await run("select count(*) as n from 'events-0.parquet'", { tenant: "bakery" });
      equal(phase, "SUCCEEDED");
    }
    await ask(`/v1/jobs/${endless}/cancel`, { reason: "enough" });
    const startedMs = performance.now();
    equal((await ended(endless)).phase, "CANCELLED");
    ok(performance.now() - startedMs < 15_000);
  });

  test("leaves the node as it was", async () => {
    const { phase, result } = await run("select count(*) as n from 'events-0.parquet'");
    deepEqual([phase, result?.length], ["SUCCEEDED", 1]);
  });
});
