import { deepEqual, equal, match, notEqual, ok, rejects } from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { realClock } from "#testing/real-clock.ts";
import { until } from "#testing/until.ts";
import { EngineError, Engines, type EngineWork } from "./engines.ts";

const never = new AbortController().signal;

describe("an engine", () => {
  let folder = "";
  let engines: Engines;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "millrace-engines-"));
    engines = new Engines({ clock: realClock, enginesMax: 1, interruptMsMax: 500 });
    await writeFile(join(folder, "secret.csv"), "a\n1\n");
  });
  after(async () => {
    await engines[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  const work = (sql: string, more: Partial<EngineWork> = {}): EngineWork => ({
    paths: [join(folder, "in.parquet"), join(folder, "out.parquet")],
    spillFolder: join(folder, "spill"),
    memoryBytes: 256 * 1024 * 1024,
    spillBytes: 256 * 1024 * 1024,
    settings: [],
    statements: [{ sql, rowsMax: 10 }],
    ...more,
  });

  test("reads and writes the files of its request", async () => {
    const { rows, digest } = await engines.run(
      work(`copy (select 7 as a) to '${join(folder, "out.parquet")}'`, { digestOf: join(folder, "out.parquet") }),
      never,
    );
    deepEqual(rows, [[["1"]]]);
    match(digest ?? "", /^[0-9a-f]{64}\/\d+$/);
  });

  // BE1
  for (const sql of [
    "select * from read_csv('FOLDER/secret.csv')",
    "select * from 'FOLDER/secret.csv'",
    "select * from read_text('/etc/hostname')",
    "select * from read_blob('/proc/self/environ')",
    "select * from glob('/*')",
    "copy (select 1) to 'FOLDER/other.parquet'",
    "copy (select 1) to 'FOLDER/out.parquet/../other.csv'",
    "attach 'FOLDER/x.db'",
    "export database 'FOLDER/exported'",
    "install httpfs",
    "load httpfs",
    "load 'FOLDER/x.duckdb_extension'",
    "select * from read_parquet('http://127.0.0.1:9/x.parquet')",
    "select * from read_parquet('s3://bucket/x.parquet')",
    "set enable_external_access=true",
    "reset enable_external_access",
    "set allowed_paths=['/etc/hostname']",
    "set memory_limit='100GB'",
    "set threads=8",
    "set temp_directory='/etc'",
    "set lock_configuration=false",
    "pragma enable_external_access=true",
    "create secret (type http, bearer_token 'x')",
    "select getenv('HOME')",
  ])
    test(`refuses: ${sql}`, async () => {
      await rejects(
        engines.run(work(sql.replaceAll("FOLDER", folder)), never),
        (error) => error instanceof EngineError,
      );
    });

  test("sees nothing of the request before it", async () => {
    await engines.run(work("create table t as select 1 as a"), never);
    await rejects(engines.run(work("select * from t"), never), /t does not exist/);
  });

  test("is the same process for the next request, even after an error", async () => {
    await engines.run(work("select 1"), never);
    const [pid] = engines.pids;
    await rejects(engines.run(work("select nonsense"), never), EngineError);
    await engines.run(work("select 1"), never);
    deepEqual(engines.pids, [pid]);
  });

  test("stops a statement when it is told to, and goes on with the next", async () => {
    const stop = new AbortController();
    const running = engines.run(work("select count(*) from range(100000000000) a"), stop.signal);
    await until("the engine runs", () => engines.pids.length > 0);
    stop.abort(new Error("enough"));
    await rejects(running, /enough/);
    deepEqual((await engines.run(work("select 1"), never)).rows, [[[1]]]);
  });

  test("that dies fails its request and is replaced", async () => {
    await engines.run(work("select 1"), never);
    const [pid = 0] = engines.pids;
    const running = engines.run(work("select count(*) from range(100000000000) a"), never);
    process.kill(pid, "SIGTERM");
    await rejects(running, (error) => error instanceof EngineError && error.why === "died");
    await engines.run(work("select 1"), never);
    notEqual(engines.pids[0], pid);
  });

  test("says when memory is not enough", async () => {
    const sql = "select max(len(l)) from (select list(i) as l from range(50000000) t(i))";
    const small = work(sql, { memoryBytes: 32 * 1024 * 1024, spillBytes: 1024 * 1024 });
    await rejects(engines.run(small, never), (error) => error instanceof EngineError && error.why === "out-of-memory");
  });

  test("sorts more than fits into memory, and leaves nothing behind", async () => {
    const sql = "select count(*) from (select hash(i)::VARCHAR as h from range(2000000) t(i) order by h offset 10)";
    const { rows } = await engines.run(work(sql, { memoryBytes: 100 * 1024 * 1024 }), never);
    deepEqual(rows, [[["1999990"]]]);
    await rejects(readFile(join(folder, "spill")), /ENOENT/);
  });

  test("writes the same bytes for the same work", async () => {
    const output = join(folder, "out.parquet");
    const sql =
      `copy (select i % 97 as k, count(*) as n, sum(i) as s from range(200000) t(i) group by k) ` +
      `to '${output}' (format parquet, compression lz4_raw)`;
    const digests = [];
    for (let i = 0; i < 3; i += 1) {
      await rm(output, { force: true });
      digests.push((await engines.run(work(sql, { digestOf: output }), never)).digest);
    }
    equal(new Set(digests).size, 1);
    ok(digests[0]);
  });

  test("answers with a bounded number of rows", async () => {
    await rejects(engines.run(work("select * from range(100000)"), never), /more than 10 rows/);
  });

  test("BE3: that is stuck is killed, and one that works is not", { skip: process.platform !== "linux" }, async () => {
    await using impatient = new Engines({ clock: realClock, enginesMax: 1, stallMsMax: 700 });
    await impatient.run(work("select count(*) from range(300000000)"), never);
    const [pid = 0] = impatient.pids;
    const running = impatient.run(work("select count(*) from range(100000000000) a"), never);
    process.kill(pid, "SIGSTOP");
    await rejects(running, /did nothing for 0.7 s/);
    await until("its process is gone", () => !impatient.pids.includes(pid));
    await impatient.run(work("select 1"), never);
  });
});
