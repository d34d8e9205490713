/** The TypeScript API against a node: rows come back, jobs outlive their clients, folders change all at once. */
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { mkdir, readdir, readFile, readlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { startNode } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { attach, col, count, dataset, JobError, rowNumber, sql, sum } from "#doors/batch/api/batch.ts";
import { clearAway } from "#testing/clear-away.ts";
import { cliLine } from "#testing/cli-line.ts";
import { apiAsks, filesIn, newFolder, writeEvents } from "./lab.ts";

const folder = await newFolder();
const oracle = await writeEvents(folder);
const data = dataFolder(join(folder, "data"));
const config = Config.parse({ cluster: { shards: 1 }, edge: { listen: ["127.0.0.1:0"] }, worker: { slots: 2 } });
const node = await startNode(config, data, { log: () => {} });
after(async () => {
  await node.stop();
  clearAway(folder);
});
apiAsks(data.path);

type Event = { user: number; country: string; ms: number };
const events = dataset.parquet<Event>(`${folder}/events-*.parquet`);
const staged = { splitBytes: 20_000, broadcastBytes: 100, folder };

describe("the batch API on a node", { timeout: 240_000 }, () => {
  test("collects rows, in one task and in stages, as DuckDB answers", async () => {
    const users = dataset.csv<{ user: number; name: string }>(`${folder}/users.csv`);
    const query = events
      .where(col("ms").gt(100))
      .join(users, "user")
      .groupBy("country")
      .agg({ n: count(), ms: sum("ms"), names: sql`count(distinct name)` })
      .sort("country");
    const want = (await oracle.runAndReadAll(query.toSql())).getRowObjectsJson();
    const told = (await query.collect()).map((row) => JSON.stringify(row));
    deepEqual(
      told,
      want.map((row) => JSON.stringify(row).replaceAll(/"(\d+)"/g, "$1")),
    );
    deepEqual(
      (await query.collect(staged)).map((row) => JSON.stringify(row)),
      told,
    );
    equal(await events.count(staged), 80_000);
    ok((await query.explain(staged)).some((line) => line.startsWith("stage 2")));
  });

  test("reads lines of text, windows and samples", async () => {
    await writeFile(join(folder, "words.txt"), 'a,b "c"\n\nd\n');
    const lines = await dataset.text(join(folder, "words.txt")).collect();
    deepEqual(lines, [{ line: 'a,b "c"' }, { line: "" }, { line: "d" }]);
    const latest = events.window({ nth: rowNumber() }, { partitionBy: ["user"], orderBy: [col("ms").desc()] });
    equal(await latest.where(col("nth").eq(1)).count(staged), 100);
    const some = await events.sample(10, 3).count();
    ok(some > 6_000 && some < 10_000, String(some));
  });

  test("goes on without its client, which attaches again by the job's id", async () => {
    const { id } = await events.groupBy("country").agg({ n: count() }).submit(staged);
    const again = await attach<{ country: string; n: number }>(id);
    equal((await again.rows()).length, 3);
    equal((await again.status()).phase, "SUCCEEDED");
    const same = { ...staged, key: "once" };
    const [first, second] = [await events.distinct().submit(same), await events.distinct().submit(same)];
    equal(first.id, second.id);
    await first.done();
  });

  test("says why a job has failed", async () => {
    const wrong = dataset.parquet(`${folder}/none-*.parquet`);
    await rejects(
      wrong.collect(),
      (error) => error instanceof JobError && /no file has such a name/.test(error.message),
    );
  });

  test("writes a folder in partitions, and writing it again changes nothing", async () => {
    const out = join(folder, "by-country");
    const write = () => events.write.parquet(out, { partitionBy: ["country"], ...staged });
    const written = await write();
    deepEqual([written.rows, written.files], [80_000, 3]);
    deepEqual((await readdir(out)).toSorted(), ["_SUCCESS", "country=de", "country=fr", "country=jp"]);
    const files = await filesIn(out);
    const manifest = JSON.parse(await readFile(join(out, "_SUCCESS"), "utf8")) as { files: { path: string }[] };
    deepEqual(
      manifest.files.map(({ path }) => path),
      [...files.keys()].filter((path) => path !== "_SUCCESS"),
    );
    equal(await dataset.parquet(`${out}/*/*.parquet`, { hive_partitioning: true }).count(), 80_000);
    equal((await write()).version, written.version);
    deepEqual(await filesIn(out), files);
  });

  test("replaces a version as a whole and keeps the one before", async () => {
    const out = join(folder, "versions");
    const first = await events.limit(10).write.parquet(out, { folder });
    const before = await readlink(out);
    const second = await events.sort("ms").limit(20).write.parquet(out, { folder });
    ok(first.version !== second.version);
    equal(await dataset.parquet(`${out}/*.parquet`).count(), 20);
    deepEqual(
      (await readdir(join(folder, ".versions.versions"))).toSorted(),
      [first.version, second.version].toSorted(),
    );
    ok(before !== (await readlink(out)));
  });

  test("replaces no folder that a query has not written", async () => {
    const out = join(folder, "mine");
    await mkdir(out);
    await writeFile(join(out, "notes.txt"), "mine");
    await rejects(events.limit(1).write.parquet(out).run({ folder }), /something else is there/);
    equal(await readFile(join(out, "notes.txt"), "utf8"), "mine");
    await rejects(
      events
        .limit(1)
        .write.parquet(join(folder, "x"), { partitionBy: ["nothing" as "country"] })
        .run(),
      /the result has user, country, ms/,
    );
  });

  test("the command writes a folder, too", async () => {
    const out = join(folder, "from-cli");
    const query = `select country, "user" from '${folder}/events-0.parquet'`;
    const told = await cliLine(data.path, "sql", "--out", out, "--partition-by", "country", query);
    equal(told.code, 0, told.notes.join("\n"));
    match(told.notes.join(), /20000 rows in 3 files written to/);
    const job = join(folder, "job.ts");
    await writeFile(
      job,
      `import { dataset, col } from "millrace/batch";
       const total = await dataset.parquet("${folder}/events-*.parquet").count();
       export default dataset.parquet("${folder}/events-0.parquet").where(col("ms").lt(total / 8000))
         .write.parquet("${folder}/from-job");`,
    );
    const ran = await cliLine(data.path, "batch", "run", job);
    equal(ran.code, 0, ran.notes.join("\n"));
    match(ran.notes.join(), /10 rows in 1 file written to/);
  });
});
