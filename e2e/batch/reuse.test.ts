/** Nothing is computed twice: a query over many files, of which one changed, computes that one and what follows. */
import { deepEqual, equal, match } from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { startNode } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { runLine } from "#cli/line.ts";
import { col, count, dataset, sql, sum, type Dataset } from "#doors/batch/api/batch.ts";
import { clearAway } from "#testing/clear-away.ts";
import { cliLine } from "#testing/cli-line.ts";
import { apiAsks, newFolder, writeEventFile, writeEvents } from "./lab.ts";

const folder = await newFolder();
const oracle = await writeEvents(folder, { files: 6, rows: 5_000 });
const data = dataFolder(join(folder, "data"));
const config = Config.parse({ cluster: { shards: 1 }, edge: { listen: ["127.0.0.1:0"] }, worker: { slots: 2 } });
let node = await startNode(config, data, { log: () => {} });
after(async () => {
  await node.stop();
  clearAway(folder);
});
apiAsks(data.path);

const typed: string[] = [];
const staged = { splitBytes: 20_000, broadcastBytes: 1, partitions: 2, folder };
const query = dataset
  .parquet<{ user: number; country: string; ms: number }>(`${folder}/events-*.parquet`)
  .groupBy("user")
  .agg({ n: count(), ms: sum("ms") })
  .sort("user");

async function run(of: Dataset<object>) {
  const job = await of.submit(staged);
  const rows = await job.rows();
  const { stages } = await job.status();
  const tasks = stages.reduce((all, one) => all + one.tasks, 0);
  const reused = stages.reduce((all, one) => all + (one as unknown as { reused: number }).reused, 0);
  return { id: job.id, rows, tasks, reused, maps: stages[0] as unknown as { tasks: number; reused: number } };
}

describe("queries that were run before", { timeout: 240_000 }, () => {
  test("compute what changed and what follows from it, and say why", async () => {
    const first = await run(query);
    deepEqual([first.reused, first.maps.tasks], [0, 6]);
    const second = await run(query);
    equal(second.reused, second.tasks);
    deepEqual(second.rows, first.rows);

    await node.stop();
    node = await startNode(config, data, { log: () => {} });
    await writeEventFile(oracle, folder, 3, 5_000, 1);
    const third = await run(query);
    deepEqual([third.maps.reused, third.maps.tasks], [5, 6]);
    const want = (await oracle.runAndReadAll(query.toSql())).getRowObjectsJson();
    deepEqual(
      third.rows.map((row) => JSON.stringify(row)),
      want.map((row) => JSON.stringify(row).replaceAll(/"(\d+)"/g, "$1")),
    );
    const why = await cliLine(data.path, "batch", "why", third.id);
    equal(why.code, 0, why.notes.join());
    match(why.out.join("\n"), /6 tasks, 5 reused/);
    match(why.out.join("\n"), /changed: .*events-3\.parquet/);
  });

  test("share what is the same in another query, and repeat what depends on chance", async () => {
    const other = await run(query.with({ twice: col("n").mul(2) }));
    equal(other.maps.reused, 6);
    const random = query.with({ r: sql`random()` }).where(col("r").lt(2));
    await run(random);
    const again = await run(random);
    equal(again.reused < again.tasks, true, "the last stage is computed again");
  });

  test("come from job files in YAML, are submitted and stopped by commands, and files have types", async () => {
    const file = join(folder, "job.yaml");
    await writeFile(file, "sql: select count(*) as n from 'events-*.parquet'\nsplitBytes: 20000\n");
    const ran = await cliLine(data.path, "batch", "run", "--json", file);
    deepEqual([ran.code, ran.out], [0, ['{"n":"30000"}']], ran.notes.join());
    await writeFile(file, "sql: select 1\nspeed: fast\n");
    const wrong = await cliLine(data.path, "batch", "run", file);
    match(wrong.notes.join(), /job\.yaml.*speed/);
    await writeFile(file, "sql: select count(*) from range(100000000) a, range(100000) b\n");
    const submitted = await cliLine(data.path, "batch", "submit", "--json", file);
    const { jobId } = JSON.parse(submitted.out[0] ?? "{}") as { jobId: string };
    equal((await cliLine(data.path, "batch", "cancel", jobId)).code, 0);
    const got = await cliLine(data.path, "batch", "get", jobId);
    match(got.notes.join(), /CANCELLED/);
    const types = await runLine(["batch", "types", join(folder, "events-*.parquet"), "--name", "Event"], {
      env: {},
      isTerminal: false,
      out: (line) => void typed.push(line),
      note: () => {},
      progress: () => {},
    });
    equal(types, 0);
    match(typed.join("\n"), /export type Event = \{\n {2}user: number \| bigint \| null; .*\n {2}country: string/);
  });
});
