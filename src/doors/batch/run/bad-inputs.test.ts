import { deepEqual, equal, rejects } from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { gzipSync } from "node:zlib";
import { LocalRuns } from "#doors/batch/testing/local-run.ts";
import { compare, openOracle } from "#doors/batch/testing/oracle.ts";
import { realClock } from "#testing/real-clock.ts";

const inOne = { splitBytes: 1024 ** 3, broadcastBytes: 1, partitions: 2, reduceBytes: 1 };
const inStages = { ...inOne, splitBytes: 100 };

describe("a query over bad files", () => {
  let runs: LocalRuns;
  const oracle = openOracle();
  const at = (name: string): string => join(runs.folder, name);
  const parquet = async (name: string, select: string): Promise<void> => {
    await (await oracle).run(`copy (${select}) to '${at(name)}' (format parquet)`);
  };
  before(async () => {
    runs = await LocalRuns.open(realClock, 1);
  });
  after(() => runs[Symbol.asyncDispose]());

  test("names a Parquet file that is none, and one that was cut off", async () => {
    await writeFile(at("none.parquet"), "this is no Parquet file at all");
    await rejects(runs.run("select * from 'none.parquet'", inOne), /none\.parquet/);
    await parquet("whole.parquet", "select range as a from range(1000)");
    const bytes = await readFile(at("whole.parquet"));
    await writeFile(at("half.parquet"), bytes.subarray(0, bytes.length / 2));
    await rejects(runs.run("select * from 'half.parquet'", inOne), /half\.parquet/);
  });

  test("names the file and the line of a CSV row that does not fit", async () => {
    const rows = Array.from({ length: 30_000 }, (_, i) => `${i},${i}`);
    rows[25_000] = "25000,oops";
    await writeFile(at("rows.csv"), `a,b\n${rows.join("\n")}\n`);
    await rejects(runs.run("select sum(b) from 'rows.csv'", inOne), /Line: 25002[^]*rows\.csv/);
  });

  test("BATCH-41: names the file whose columns are not those of the others", async () => {
    for (const i of [1, 2]) await parquet(`drift-${i}.parquet`, "select 1 as a");
    await parquet("drift-3.parquet", "select 'x' as a, 2 as b");
    await rejects(runs.run("select * from 'drift-*.parquet'", inOne), /drift-3\.parquet/);
  });

  test("refuses a small file that unpacks to one endless line", async () => {
    await writeFile(at("bomb.csv.gz"), gzipSync(Buffer.alloc(4 * 1024 * 1024, "a")));
    await rejects(runs.run("select count(*) from 'bomb.csv.gz'", inOne), /bomb\.csv\.gz/);
  });

  test("reads many tiny files in few tasks", async () => {
    for (let i = 0; i < 300; i += 1) await writeFile(at(`tiny-${i}.csv`), `a\n${i}\n`);
    const sql = `select sum(a) as s, count(*) as n from '${at("tiny-*.csv")}'`;
    const answer = await runs.run(sql, { ...inOne, splitBytes: 512 });
    equal((await compare(await oracle, sql, answer, false)).isSame, true);
    equal(answer.stages[0]?.parts.length, 3);
  });

  test("BATCH-23: a file without rows is as good as any, in stages too", async () => {
    await parquet("empty.parquet", "select range as a, range % 3 as b from range(0)");
    const sql = `select b, sum(a) as s from '${at("empty.parquet")}' group by b order by b`;
    const answer = await runs.run(sql, inStages);
    const { isSame, want } = await compare(await oracle, sql, answer, true);
    deepEqual([isSame, want, answer.plan.how.kind], [true, [], "stages"]);
  });

  for (const sql of ["select * from read_text('/etc/hostname')", "select * from read_blob('/proc/self/environ')"])
    test(`is not planned where it reads what is no source: ${sql}`, async () => {
      await rejects(runs.run(sql, inOne));
    });
});
