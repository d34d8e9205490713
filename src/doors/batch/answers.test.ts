/** Values that engines disagree about: in stages they come out as they do in one process. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { LocalRuns } from "./testing/local-run.ts";
import { NearEngine } from "./testing/near-engine.ts";
import { compare, openOracle } from "./testing/oracle.ts";

const settings = { splitBytes: 300, broadcastBytes: 1, partitions: 3, reduceBytes: 1 };

const odd = `select range as id, range % 5 as g,
  case range % 9 when 0 then NULL when 1 then 'nan'::DOUBLE when 2 then -0.0 when 3 then 0.0
    when 4 then 'infinity'::DOUBLE when 5 then '-infinity'::DOUBLE else range / 8.0 end::DOUBLE as f,
  case range % 8 when 0 then NULL else ['', 'a', 'B', 'Ä', 'ab', 'b', 'zeta', 'é'][range % 8 + 1] end as s,
  case range % 7 when 0 then NULL else (range % 13 / 10.0)::DECIMAL(10,1) end as d1,
  (range % 13 / 10.0)::DECIMAL(12,3) as d3, (range % 40)::TINYINT as i8, (range % 40)::BIGINT as i64,
  case when range % 6 = 0 then NULL else TIMESTAMPTZ '2024-03-30 22:30:00+00' + to_minutes(range * 30) end as tz,
  DATE '2024-02-28' + (range % 4)::INTEGER as dt, (range * 1000003)::HUGEINT * 10000000000 as h
  from range(600)`;

describe("in stages", () => {
  let runs: LocalRuns;
  const oracle = openOracle();
  before(async () => {
    runs = await LocalRuns.on(await NearEngine.open());
    const write = async (name: string, select: string): Promise<void> => {
      await (await oracle).run(`copy (${select}) to '${runs.folder}/${name}.parquet' (row_group_size 64)`);
    };
    await write("odd", odd);
    await write("other", `${odd.replace("range(600)", "range(300, 900)")}`);
    await write("none", `select * from (${odd}) limit 0`);
    await write("one_key", "select case when range < 3000 then 1 else range end as k, range as v from range(4000)");
    await write("wide", "select range as id, repeat(chr((97 + range % 26)::INTEGER), 6000000) as t from range(3)");
    await write("records", "select md5(range::VARCHAR)[:10] as key, range::VARCHAR as value from range(20000)");
  });
  after(() => runs[Symbol.asyncDispose]());

  const answered = async (sql: string) => {
    const own = sql.replace(/'(\w+)\.parquet'/g, `'${runs.folder}/$1.parquet'`);
    const answer = await runs.run(own, settings);
    const { isSame, want, got } = await compare(await oracle, own, answer, / order by [^()]*$/.test(sql));
    equal(answer.plan.how.kind, "stages", JSON.stringify(answer.plan.how).slice(0, 200));
    if (!isSame) deepEqual(got, want);
    return { answer, want };
  };

  for (const [about, sql] of [
    [
      "BATCH-20: integers of all widths meet",
      "select count(*), sum(a.id) from 'odd.parquet' a join 'other.parquet' b on a.i8 = b.i64",
    ],
    [
      "BATCH-20: decimals of different scales meet",
      "select count(*), sum(a.id) from 'odd.parquet' a join 'other.parquet' b on a.d1 = b.d3",
    ],
    [
      "BATCH-20: both zeros meet, and NaN meets NaN",
      "select a.f, count(*) from 'odd.parquet' a join 'other.parquet' b on a.f = b.f group by a.f",
    ],
    [
      "BATCH-19: NULL is a group, and no key of a join",
      "select s, count(*), count(f), count(distinct f) from 'odd.parquet' group by s",
    ],
    [
      "BATCH-19: NULLs that are not distinct meet",
      "select count(*) from 'odd.parquet' a join 'other.parquet' b on a.s is not distinct from b.s and a.id = b.id",
    ],
    ["BATCH-19: NaN and both zeros are one group each", "select f, count(*), min(id) from 'odd.parquet' group by f"],
    [
      "BATCH-20: sums of decimals and of huge integers are exact",
      "select g, sum(d1), sum(d3), avg(d3), sum(h), max(h) from 'odd.parquet' group by g",
    ],
    [
      "BATCH-22: doubles are ordered, NaN last and NULLs where it says",
      "select f, id from 'odd.parquet' order by f nulls first, id desc",
    ],
    ["BATCH-22: doubles are ordered downwards", "select f, id from 'odd.parquet' order by f desc nulls last, id"],
    ["BATCH-22: texts are ordered by their bytes", "select s, id from 'odd.parquet' order by s desc nulls first, id"],
    [
      "BATCH-22: decimals, dates and instants are ordered",
      "select d1, dt, tz, id from 'odd.parquet' order by d1 desc, dt, tz desc nulls last, id",
    ],
    ["BATCH-22: huge integers are ordered", "select h, id from 'odd.parquet' order by h desc"],
    [
      "BATCH-22: instants are grouped by days of UTC",
      "select date_trunc('day', tz) as day, count(*) from 'odd.parquet' group by day order by day",
    ],
    [
      "BATCH-22: instants of another zone",
      "select date_trunc('day', tz at time zone 'Asia/Tokyo') as d, count(*) from 'odd.parquet' group by d order by d",
    ],
    [
      "BATCH-23: nothing, grouped",
      "select s, sum(id) from read_parquet(['none.parquet', 'odd.parquet']) where id < 0 group by s",
    ],
    ["BATCH-23: nothing, in sum", "select count(*), sum(a.id), max(a.s) from 'odd.parquet' a where a.id < 0"],
    [
      "BATCH-23: nothing, joined",
      "select count(*) from 'odd.parquet' a left join 'none.parquet' b on a.id = b.id where b.id is null",
    ],
    ["BATCH-23: nothing, ordered", "select id from 'odd.parquet' where id < 0 order by id"],
    [
      "BATCH-25: one key has most of the rows",
      "select k, count(*) as n from 'one_key.parquet' join 'one_key.parquet' u using (k) where u.v < 9 group by k",
    ],
    [
      "BATCH-24: values of megabytes",
      "select id, length(t) as n, left(t, 3) as head from 'wide.parquet' a join 'odd.parquet' b using (id) order by id",
    ],
  ] as const)
    test(about, async () => {
      await answered(sql);
    });

  test("BATCH-22: an order by another collation is followed", async () => {
    const sql = `select s, id from '${runs.folder}/odd.parquet' order by s collate nocase, id`;
    const { isSame, want, got } = await compare(await oracle, sql, await runs.run(sql, settings), true);
    if (!isSame) deepEqual(got, want);
  });

  test("BATCH-21: ranges are in order, no key is in two of them, and every record is there once", async () => {
    const { answer } = await answered("select key, value from 'records.parquet' order by key");
    ok(answer.paths.length > 1, "it is one range");
    let before = "";
    let [count, sum] = [0, 0n];
    for (const path of answer.paths) {
      const rows = (await (await oracle).runAndReadAll(`select c0, c1 from read_parquet('${path}')`)).getRows();
      const [first] = rows[0] ?? [];
      ok(count === 0 || before < String(first), `${before} is in two ranges, or behind ${String(first)}`);
      for (const [key, value] of rows) {
        ok(before <= String(key));
        before = String(key);
        count += 1;
        sum += BigInt(String(value));
      }
    }
    deepEqual([count, sum], [20_000, (19_999n * 20_000n) / 2n]);
  });
});
