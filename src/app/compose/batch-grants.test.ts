/** Queries of tenants on a real node: what is granted to them, in folders and in a bucket, and nothing else. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { LittleS3, littleCredentials } from "#blobs/tiers/testing/little-s3.ts";
import { openOracle } from "#doors/batch/testing/oracle.ts";
import { tokenSha256 } from "#edge/identity/bearer.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";
import { startNode, type Running } from "./compose.ts";

type View = {
  readonly phase: string;
  readonly ended: boolean;
  readonly failure?: string;
  readonly tasks: number;
  readonly result?: readonly string[];
  readonly written?: { readonly folder: string; readonly files: number; readonly rows: number };
};

describe("queries of tenants", { timeout: 180_000 }, () => {
  let path = "";
  let running: Running;
  let s3: LittleS3;
  const oracle = openOracle();
  const tokenOf = { acme: randomUUID(), bakery: randomUUID() };

  before(async () => {
    path = await mkdtemp(join(tmpdir(), "millrace-batch-grants-"));
    s3 = await LittleS3.start();
    for (const folder of ["lake", "out", "bakery"]) await mkdir(join(path, folder));
    const rows = `select range as a, range % 7 as b, range::VARCHAR as s from range(10000)`;
    await (await oracle).run(`copy (${rows}) to '${path}/lake/t.parquet' (row_group_size 2048)`);
    await writeFile(join(path, "lake", "names.csv"), "b,name\n1,one\n2,two\n3,\n");
    await writeFile(join(path, "bakery", "secret.csv"), "a\nbread\n");
    await writeFile(join(path, "secret.csv"), "a\nnode\n");
    await symlink("../secret.csv", join(path, "lake", "link.csv"));
    const bucket = {
      endpoint: s3.endpoint,
      region: "here",
      bucket: "mill",
      accessKey: "s3-id",
      secretKey: "s3-key",
    };
    const tokens = Object.entries(tokenOf).map(([tenant, token]) => ({
      name: tenant,
      tenant,
      roles: ["member"],
      sha256: tokenSha256(token),
    }));
    const config = Config.parse({
      cluster: { shards: 1 },
      journal: { kind: "memory" },
      edge: { listen: ["127.0.0.1:0"], identity: { tokens } },
      worker: { slots: 2 },
      batch: {
        inputs: [
          { name: "lake", tenants: ["acme"], folder: join(path, "lake") },
          { name: "out", tenants: ["acme"], folder: join(path, "out"), write: true },
          { name: "bakery", tenants: ["bakery"], folder: join(path, "bakery") },
          { name: "far", tenants: ["acme"], s3: { ...bucket, prefix: "acme/" }, write: true },
          { name: "broken", tenants: ["acme"], s3: { ...bucket, prefix: "acme/", secretKey: "none" } },
        ],
      },
    });
    running = await startNode(config, dataFolder(join(path, "data")), { log: () => {} });
    for (const [name, value] of [
      ["s3-id", littleCredentials.accessKeyId],
      ["s3-key", littleCredentials.secretAccessKey],
    ] as const)
      equal((await ask(running.owner ?? "", "PUT", `/v1/secrets/${name}?tenant=acme`, { value })).status, 200);
  });
  after(async () => {
    await running.stop();
    await s3[Symbol.asyncDispose]();
    clearAway(path);
  });

  const ask = (token: string, method: string, where: string, body?: object): Promise<Response> =>
    fetch(`http://127.0.0.1:${running.edgePorts[0]}${where}`, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(30_000),
    });

  type Tenant = keyof typeof tokenOf;
  const run = async (tenant: Tenant, document: object): Promise<View> => {
    const submitted = await ask(tokenOf[tenant], "POST", "/v1/jobs", { door: "batch", document });
    const text = await submitted.text();
    ok(submitted.ok, text);
    const { job } = JSON.parse(text) as { job: string };
    let view: View | undefined;
    await until(
      `${job} has ended`,
      async () => {
        view = (await (await ask(tokenOf[tenant], "GET", `/v1/batch/queries/${job}`)).json()) as View;
        return view.ended;
      },
      { limitMs: 60_000 },
    );
    return view as View;
  };
  const rowsOf = async (tenant: Tenant, { result = [] }: View): Promise<unknown> => {
    const files: string[] = [];
    for (const digest of result) {
      const response = await ask(tokenOf[tenant], "GET", `/v1/build-cache/blobs/${digest}`);
      equal(response.status, 200);
      const file = join(path, `${digest.replace("/", "-")}.parquet`);
      await writeFile(file, new Uint8Array(await response.arrayBuffer()));
      files.push(`'${file}'`);
    }
    return (await (await oracle).runAndReadAll(`select * from read_parquet([${files.join(", ")}])`)).getRowsJson();
  };
  const staged = { splitBytes: 20_000, broadcastBytes: 100, partitions: 3, reduceBytes: 1 };

  test("read and write what is granted, by its name, in stages", async () => {
    const sql = "select b, count(*) as n from 'lake/t.parquet' join 'lake/names.csv' using (b) group by b order by b";
    const view = await run("acme", { sql, ...staged });
    equal(view.phase, "SUCCEEDED", view.failure ?? "");
    ok(view.tasks > 3);
    deepEqual(await rowsOf("acme", view), [
      ["1", "1429"],
      ["2", "1429"],
      ["3", "1429"],
    ]);
    const written = await run("acme", { sql, output: { folder: "out/by-b" } });
    equal(written.phase, "SUCCEEDED", written.failure ?? "");
    ok((await readdir(join(path, "out", "by-b"))).includes("_SUCCESS"));
  });

  const refused = [
    ["select * from 'PATH/secret.csv'", /names begin with what is granted/],
    ["select * from 'bakery/secret.csv'", /names begin with what is granted/],
    ["select * from 'lake/../secret.csv'", /leads upwards/],
    ["select * from 'lake/link.csv'", /leads out/],
    ["select * from 'lake/*.csv'", /leads out/],
    ["select * from read_text('PATH/secret.csv')", /Permission|disabled|access/i],
    ["select * from read_blob('/proc/self/environ')", /Permission|disabled|access/i],
    ["select * from glob('/*')", /Permission|disabled|access/i],
    ["select * from 'lake/names.csv', read_text('PATH/lake/t.parquet')", /Permission|disabled|access/i],
    ["select * from 'http://127.0.0.1:9/a.parquet'", /s3:\/\/bucket\/key/],
    ["install httpfs", /./],
    ["copy (select 1 as a) to 'PATH/out/x.csv'", /./],
    ["attach 'PATH/x.db'", /./],
    ["select * from 's3://mill/bakery/a.parquet'", /names begin with what is granted/],
    ["select * from 'broken/a.parquet'", /there is no such secret/],
  ] as const;
  for (const [sql, why] of refused)
    test(`are refused: ${sql}`, async () => {
      const { phase, failure = "" } = await run("acme", { sql: sql.replaceAll("PATH", path) });
      equal(phase, "FAILED");
      match(failure, why);
      ok(!failure.includes("bread") && !failure.includes("node\n"), failure);
    });

  test("are refused where they would write elsewhere", async () => {
    for (const folder of ["lake/x", join(path, "x"), "out/../x", "bakery/x", "s3://mill/bakery/x"]) {
      const { phase, failure = "" } = await run("acme", { sql: "select 1 as a", output: { folder } });
      equal(phase, "FAILED", folder);
      match(failure, /granted|upwards/);
    }
    await symlink("..", join(path, "out", "up"));
    const up = await run("acme", { sql: "select 1 as a", output: { folder: "out/up/x" } });
    match(up.failure ?? "", /leads out of what is granted/);
  });

  test("are not put together by hand, nor do tenants see each other's", async () => {
    const { failure } = await run("bakery", { sql: "select * from 'lake/t.parquet'" });
    match(failure ?? "", /names begin with what is granted: bakery\//);
    const schedule = await ask(tokenOf.acme, "PUT", "/v1/schedules/nightly", {
      cron: "0 3 * * *",
      door: "batch",
      document: JSON.stringify({ sql: "select 1" }),
    });
    equal(schedule.status, 403, await schedule.text());
  });

  test("read objects of a bucket, and write a version there as a whole", async () => {
    const parts = await readFile(join(path, "lake", "t.parquet"));
    const put = (key: string, bytes: Buffer): void =>
      void s3.objects.set(key, { bytes, etag: `"${randomUUID()}"`, changedAtMs: Date.now() });
    put("acme/in/country=fr/1.parquet", parts);
    put("acme/in/country=de/2.parquet", parts);
    put("acme/names.csv", Buffer.from("b,name\n1,one\n2,two\n"));
    const sql = (from: string): string =>
      `select t.country, n.name, count(*) as n from read_parquet('${from}', hive_partitioning=true) t join 'far/names.csv' n using (b) group by all order by all`;
    const view = await run("acme", { sql: sql("far/in/*/*.parquet"), ...staged });
    equal(view.phase, "SUCCEEDED", view.failure ?? "");
    deepEqual(await rowsOf("acme", view), [
      ["de", "one", "1429"],
      ["de", "two", "1429"],
      ["fr", "one", "1429"],
      ["fr", "two", "1429"],
    ]);
    const folder = "s3://mill/acme/out";
    const write = (rows: number): Promise<View> =>
      run("acme", { sql: `select range as a from range(${rows})`, output: { folder } });
    const first = await write(10);
    deepEqual([first.phase, first.failure, first.written?.folder], ["SUCCEEDED", undefined, `${folder}/`]);
    const keys = (): readonly string[] =>
      [...s3.objects.keys()].filter((key) => key.startsWith("acme/out/")).toSorted();
    const before = keys();
    equal((await write(10)).phase, "SUCCEEDED");
    deepEqual(keys(), before);
    equal((await write(20)).phase, "SUCCEEDED");
    equal(keys().length, 3); // the version before is there for its readers
    const count = await run("acme", { sql: `select count(*) as n from '${folder}/*.parquet'` });
    deepEqual(await rowsOf("acme", count), [["20"]], count.failure ?? "");
    equal((await write(30)).phase, "SUCCEEDED");
    equal(keys().length, 3);
    const foreign = await run("acme", { sql: "select 1 as a", output: { folder: "far/in" } });
    match(foreign.failure ?? "", /something else is there/);
  });

  test("fail where an object is not the one that was planned", async () => {
    const bytes = await readFile(join(path, "lake", "t.parquet"));
    s3.objects.set("acme/moving.parquet", { bytes, etag: '"1"', changedAtMs: Date.now() });
    let gets = 0;
    s3.misbehave = (method, key) => {
      if (method === "GET" && key.endsWith("moving.parquet") && (gets += 1) === 1)
        queueMicrotask(() => s3.objects.set("acme/moving.parquet", { bytes, etag: '"2"', changedAtMs: Date.now() }));
      return undefined;
    };
    const { phase, failure = "" } = await run("acme", {
      sql: "select count(*) from 'far/moving.parquet'",
      fresh: true,
    });
    equal(phase, "FAILED");
    match(failure, /changed or removed after the job began/);
  });
});
