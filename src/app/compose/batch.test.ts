/** Queries on a real node: submitted, planned, run by its worker, fetched from its edge. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { readdir, readFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { randomUUID } from "node:crypto";
import { openOracle, rowsOf } from "#doors/batch/testing/oracle.ts";
import { planSubmit } from "#doors/batch/plan.ts";
import { cutDefaults, type CutSettings } from "#doors/batch/plan/settings.ts";
import { viewBatch, type BatchView } from "#doors/batch/view.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { clearAway } from "#testing/clear-away.ts";
import { until } from "#testing/until.ts";
import { startNode, type Running } from "./compose.ts";

const small: CutSettings = { splitBytes: 20_000, broadcastBytes: 100, partitions: 3, reduceBytes: 1 };
const never = new AbortController().signal;

describe("a node runs queries", { timeout: 180_000 }, () => {
  let path = "";
  let running: Running;
  const oracle = openOracle();
  before(async () => {
    path = await mkdtemp(join(tmpdir(), "millrace-batch-node-"));
    const config = Config.parse({
      cluster: { shards: 2 },
      journal: { kind: "memory" },
      edge: { listen: ["127.0.0.1:0"] },
      worker: { slots: 2 },
    });
    running = await startNode(config, dataFolder(join(path, "data")), { log: () => {} });
    await (
      await oracle
    ).run(
      `copy (select range as a, range % 7 as b, range::VARCHAR as s from range(10000)) to '${path}/t.parquet' (row_group_size 2048)`,
    );
    await writeFile(join(path, "names.csv"), "b,name\n1,one\n2,two\n3,\n");
  });
  after(async () => {
    await running.stop();
    clearAway(path);
  });

  const submit = async (sql: string, settings: CutSettings = small, key?: string): Promise<string> => {
    const job = { sql, folder: path, settings, isExplained: false };
    const wishes = { tenant: "default", unique: randomUUID(), ...(key !== undefined && { key }) };
    return (await running.client.submit(planSubmit(job, wishes))).jobId;
  };
  const ended = async (jobId: string): Promise<BatchView> => {
    for await (const _ of running.client.watch(jobId, never));
    return viewBatch((await running.client.job(jobId, { tasksMax: 10_000 })).view);
  };
  const rows = async (packs: readonly string[] | undefined): Promise<readonly string[]> => {
    const files: string[] = [];
    for (const digest of packs ?? []) {
      const url = `http://127.0.0.1:${running.edgePorts[0]}/api/cache/blobs/${digest}`;
      const response = await fetch(url, { headers: { authorization: `Bearer ${running.owner}` } });
      equal(response.status, 200);
      const file = join(path, `${digest.replace("/", "-")}.parquet`);
      await writeFile(file, new Uint8Array(await response.arrayBuffer()));
      files.push(`'${file}'`);
    }
    const found = await rowsOf(await oracle, `select * from read_parquet([${files.join(", ")}])`);
    for (const file of files) await rm(file.slice(1, -1));
    return found;
  };

  test("in stages, with the answer of one process", async () => {
    const sql =
      "select n.name, count(*), sum(t.a)::BIGINT from 't.parquet' t join 'names.csv' n using (b) group by 1 order by 1";
    const view = await ended(await submit(sql));
    equal(view.phase, "SUCCEEDED", view.failure ?? "");
    ok(view.stages.length > 1);
    const whole = sql.replace("'t.parquet'", `'${path}/t.parquet'`).replace("'names.csv'", `'${path}/names.csv'`);
    deepEqual(await rows(view.result), await rowsOf(await oracle, whole));
  });

  test("in one task where that is enough", async () => {
    const view = await ended(await submit("select count(*) from 't.parquet'", cutDefaults));
    equal(view.stages.length, 1);
    deepEqual(await rows(view.result), ['["10000"]']);
  });

  test("and says what is wrong with one, at once", async () => {
    const view = await ended(await submit("select nonsense from 't.parquet'"));
    equal(view.phase, "FAILED");
    match(view.failure ?? "", /Binder Error: Referenced column "nonsense" not found/);
    match((await ended(await submit("select * from 'missing/*.parquet'"))).failure ?? "", /no file has such a name/);
    match((await ended(await submit("select * from read_text('/etc/passwd')"))).failure ?? "", /Permission Error/);
  });

  test("once, however often it is submitted with one key", async () => {
    const first = await submit("select 1 as x", cutDefaults, "nightly");
    equal(await submit("select 1 as x", cutDefaults, "nightly"), first);
    deepEqual(await rows((await ended(first)).result), ["[1]"]);
  });

  test(
    "to the same packs although an engine is killed",
    { skip: process.platform !== "linux" && "needs /proc" },
    async () => {
      const sql = "select b, s, count(*), sum(a)::BIGINT from 't.parquet' group by b, s order by s";
      const calm = await ended(await submit(sql));
      equal(calm.phase, "SUCCEEDED", calm.failure ?? "");
      const jobId = await submit(sql);
      let killed = 0;
      await until(
        "the query has ended, with engines killed meanwhile",
        async () => {
          const { view } = await running.client.job(jobId, { tasksMax: 0 });
          if (view.endedAtMs !== undefined) return true;
          if (killed < 3) for (const pid of (await enginePids()).slice(0, 1)) killed += kill(pid);
          return false;
        },
        { limitMs: 60_000, everyMs: 30 },
      );
      const stormy = await ended(jobId);
      equal(stormy.phase, "SUCCEEDED", stormy.failure ?? "");
      deepEqual(stormy.result, calm.result);
      ok(killed > 0);
    },
  );
});

function kill(pid: number): number {
  try {
    process.kill(pid, "SIGKILL");
    return 1;
  } catch {
    return 0;
  }
}

/** Engines of this very process. */
async function enginePids(): Promise<readonly number[]> {
  const found: number[] = [];
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const status = await readFile(`/proc/${name}/status`, "utf8").catch(() => "");
    const line = await readFile(`/proc/${name}/cmdline`, "utf8").catch(() => "");
    if (status.includes(`PPid:\t${process.pid}\n`) && line.includes("engine-child.ts")) found.push(Number(name));
  }
  return found;
}
