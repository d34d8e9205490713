/** Two nodes over PostgreSQL and a bucket, which has inputs and results of queries. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { littleCredentials } from "#blobs/tiers/testing/little-s3.ts";
import { openOracle } from "#doors/batch/testing/oracle.ts";
import { clearAway } from "#testing/clear-away.ts";
import { startPostgres } from "#testing/postgres.ts";
import { until } from "#testing/until.ts";
import { QueryCluster } from "./cluster-lab.ts";
import { newFolder } from "./lab.ts";

const postgres = await startPostgres({ durable: false });
const folder = await newFolder();
const skip = postgres.skip || (process.platform === "linux" ? false : "needs Linux");
const files = 4;

type View = {
  readonly phase: string;
  readonly ended: boolean;
  readonly failure?: string;
  readonly result?: readonly string[];
  readonly written?: { readonly rows: number };
};

describe("queries over a bucket on two nodes", { timeout: 400_000, skip }, () => {
  let cluster: QueryCluster;
  const oracle = openOracle();

  before(async () => {
    cluster = await QueryCluster.open(
      join(folder, "nodes"),
      await postgres.server().freshDatabase(),
      ["mill", "race"],
      ({ endpoint }) => ({
        batch: {
          inputs: [
            {
              name: "lake",
              tenants: ["default"],
              write: true,
              s3: {
                endpoint,
                region: "here",
                bucket: "mill",
                prefix: "lake/",
                accessKey: "s3-id",
                secretKey: "s3-key",
              },
            },
          ],
        },
      }),
    );
    for (const [name, value] of [
      ["s3-id", littleCredentials.accessKeyId],
      ["s3-key", littleCredentials.secretAccessKey],
    ] as const)
      await ask("PUT", `/v1/secrets/${name}`, { value });
    for (let i = 0; i < files; i += 1) {
      const path = join(folder, `${i}.parquet`);
      // Of more than a mebibyte: to plan, only its footer is fetched.
      await (
        await oracle
      ).run(
        `copy (select range * ${files} + ${i} as id, md5(range::varchar || '${i}') || md5(range::varchar || 'x${i}') as v from range(40000)) to '${path}'`,
      );
      const bytes = await readFile(path);
      cluster.s3.objects.set(`lake/in/${i}.parquet`, { bytes, etag: `"${randomUUID()}"`, changedAtMs: Date.now() });
    }
  });
  after(async () => {
    await cluster?.[Symbol.asyncDispose]();
    await postgres.stop();
    clearAway(folder);
  });

  async function ask<T>(method: string, path: string, body?: object): Promise<T> {
    const response = await fetch(`http://${cluster.first.address}${path}`, {
      method,
      headers: { ...cluster.first.headers, "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
    return JSON.parse(text || "{}") as T;
  }

  async function run(document: object): Promise<{ readonly view: View; readonly writers: readonly string[] }> {
    const { job } = await ask<{ job: string }>("POST", "/v1/jobs", {
      door: "batch",
      document: { ...document, granted: true },
    });
    let view: View | undefined;
    const isOver = async (): Promise<boolean> => (view = await ask<View>("GET", `/v1/batch/queries/${job}`)).ended;
    await until(`${job} has ended`, isOver, { limitMs: 180_000, everyMs: 50 });
    equal(view?.phase, "SUCCEEDED", view?.failure ?? "");
    const { tasks } = await ask<{ tasks: readonly { result?: string }[] }>("GET", `/v1/jobs/${job}`);
    const writers = tasks.flatMap(({ result = "" }) => /"at":"(\w+)"/.exec(result)?.[1] ?? []);
    return { view: view, writers: [...new Set(writers)].toSorted() };
  }

  test("both read it, and the result is there as a whole", async () => {
    const sql = "select id % 10 as d, count(*) as n, max(v) as v from 'lake/in/*.parquet' group by d";
    const staged = { splitBytes: 1, broadcastBytes: 1, partitions: 4, reduceBytes: 1, fresh: true };
    // One node may take all tasks of a run: then the query runs again.
    const writers = new Set<string>();
    let view: View | undefined;
    for (let tries = 0; tries < 8 && writers.size < 2; tries += 1) {
      const ran = await run({ sql, ...staged, output: { folder: "lake/out" } });
      view = ran.view;
      for (const one of ran.writers) writers.add(one);
    }
    deepEqual([...writers].toSorted(), ["mill", "race"]);
    equal(view?.written?.rows, 10);
    const keys = [...cluster.s3.objects.keys()].filter((key) => key.startsWith("lake/out/"));
    ok(keys.includes("lake/out/_SUCCESS"), keys.join());
    const total = await run({ sql: "select sum(n)::int as n from 'lake/out/*.parquet'" });
    equal(total.view.result?.length, 1);
  });
});
