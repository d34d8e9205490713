/** What a query is cut into, seen through `explain`. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { LocalRuns } from "#doors/batch/testing/local-run.ts";
import { NearEngine } from "#doors/batch/testing/near-engine.ts";
import { compare, openOracle } from "#doors/batch/testing/oracle.ts";

const small = { splitBytes: 20_000, broadcastBytes: 100, partitions: 3, reduceBytes: 1 };

describe("a query", () => {
  let runs: LocalRuns;
  const oracle = openOracle();
  before(async () => {
    runs = await LocalRuns.on(await NearEngine.open());
    const columns = "range as a, range % 7 as b, range::VARCHAR as s, (range * 0.5)::DECIMAL(9,2) as d";
    for (const [name, rows] of [
      ["t", 10_000],
      ["u", 9_000],
    ] as const)
      await (
        await oracle
      ).run(`copy (select ${columns} from range(${rows})) to '${runs.folder}/${name}.parquet' (row_group_size 2048)`);
    await (
      await oracle
    ).run(
      `copy (select case when range % 10 < 7 then 5 else range end as a, md5(range::VARCHAR) as s from range(6000)) to '${runs.folder}/f.parquet' (row_group_size 2048)`,
    );
  });
  after(async () => {
    await runs[Symbol.asyncDispose]();
  });

  const run = async (sql: string, more: Partial<typeof small> = {}) => {
    const answer = await runs.run(sql, { ...small, ...more });
    const whole = sql.replace(/'([tuf])\.parquet'/g, `'${runs.folder}/$1.parquet'`);
    const { isSame, want, got } = await compare(await oracle, whole, answer, / order by [^)]*$/.test(sql));
    deepEqual(isSame ? [] : got, isSame ? [] : want);
    return { ...answer, about: answer.stages.map(({ stage }) => stage.about) };
  };

  test("over little is one task, as it is", async () => {
    const { about, stages } = await run("select b, count(*) from 't.parquet' group by b", { splitBytes: 1e9 });
    deepEqual(about, ["all in one task: its sources are small"]);
    equal(stages[0]?.parts.length, 1);
  });

  test("with groups is aggregated before and after rows move", async () => {
    const { about, stages } = await run("select b, sum(a), avg(d), count(*) from 't.parquet' group by b");
    deepEqual(about, ["partial groups", "result"]);
    ok((stages[0]?.parts.length ?? 0) > 1);
    ok((stages[1]?.parts.length ?? 0) > 1);
  });

  test("with about as many groups as rows moves rows as they are", async () => {
    const written = async (key: string): Promise<readonly string[]> => {
      const sql =
        `select ${key} as k, sum(a), avg(d), count(*) filter (where b > 3), min(s), count(s), bool_or(b = 2) ` +
        "from 't.parquet' group by 1";
      const { stages } = await run(sql);
      deepEqual(
        stages.map(({ stage }) => stage.about),
        ["partial groups", "result"],
      );
      return (stages[0]?.stage.branches ?? []).map(({ plain }) => plain?.unless ?? "");
    };
    for (const key of ["s", "b", "case when b < 3 then a end"]) match((await written(key)).join(), /count\(distinct/);
    await run("select distinct s, d from 't.parquet'");
    await run("select distinct b from 't.parquet'");
  });

  test("joins a small side without moving the large one", async () => {
    const { about } = await run("select count(*) from 't.parquet' join 'u.parquet' using (a) where u.b = 3", {
      broadcastBytes: 40_000,
    });
    deepEqual(about, ["the small side of a join", "partial aggregates", "result"]);
  });

  test("joins two large sides by their keys", async () => {
    const { about } = await run("select t.s, u.s from 't.parquet' join 'u.parquet' using (a)");
    deepEqual(about, ["a side of a join", "a side of a join", "result"]);
  });

  test("sees that a side is small once it is written, and leaves the other where it is", async () => {
    const sql = "select count(*) from 't.parquet' join 'u.parquet' using (a) where u.s like '%77%'";
    const { about } = await run(sql, { broadcastBytes: 5_000 });
    deepEqual(about, ["a side of a join", "partial aggregates", "result"]);
  });

  test("sorts by ranges, each in a task of its own", async () => {
    const { about, stages } = await run("select s, a from 't.parquet' order by s desc, a");
    deepEqual(about, ["sort", "result"]);
    equal(stages[1]?.parts.length, 3);
  });

  test("takes the first rows of each part only", async () => {
    const { about } = await run("select s from 't.parquet' order by s desc limit 5");
    deepEqual(about, ["the first rows of each part", "result"]);
  });

  test("with windows moves rows by what they are partitioned by", async () => {
    const { about } = await run("select a, row_number() over (partition by b order by a) from 't.parquet'");
    deepEqual(about, ["window partitions", "result"]);
  });

  test("runs what occurs twice once", async () => {
    const { about } = await run(
      "with c as materialized (select b, count(*) as n from 't.parquet' group by b) " +
        "select * from c x join c y using (n)",
    );
    equal(about.filter((one) => one === "partial groups").length, 1);
  });

  test("that cannot be cut runs as one task and says why", async () => {
    const { about } = await run("select list(a) from 't.parquet'");
    match(about.join(), /all in one task: the aggregate list without an order/);
  });

  test("has the same stages whenever it is planned, and others when anything differs", async () => {
    const sql = "select b, sum(a) from 't.parquet' where a > 5 group by b";
    const ids = async (text: string): Promise<readonly string[]> =>
      (await run(text)).stages.map(({ stage }) => stage.id);
    const first = await ids(sql);
    deepEqual(await ids(sql), first);
    deepEqual(await ids(sql.replace("sum(a)", "sum( a )  ")), first);
    const other = await ids(sql.replace("> 5", "> 6"));
    equal(
      other.some((id) => first.includes(id)),
      false,
    );
  });

  test("writes the same packs however often it runs", async () => {
    const sql = "select b, s, count(*) from 't.parquet' group by b, s";
    const [first, second] = [await run(sql), await run(sql)];
    deepEqual(second.paths, first.paths);
  });

  for (const [kind, splits] of [
    ["join", true],
    ["left join", true],
    ["semi join", true],
    ["anti join", true],
    ["full join", false],
  ] as const)
    test(`with a ${kind} on a frequent key ${splits ? "splits" : "keeps together"} its partition`, async () => {
      const sql = `select f.* from 'f.parquet' f ${kind} (select a + 1 as a, s from 'u.parquet') u on f.a = u.a`;
      const { stages } = await run(sql, { partitions: 4, reduceBytes: 2_000 });
      const slices = stages.at(-1)?.parts.map(({ slice }) => slice) ?? [];
      equal(
        slices.some((slice) => slice.by === "partition" && slice.of !== undefined),
        splits,
      );
    });

  test("groups what was joined on the same key without splitting it", async () => {
    const sql =
      "select f.a, count(*) as n, max(u.s) as m from 'f.parquet' f " +
      "join (select a + 1 as a, s from 'u.parquet') u on f.a = u.a group by f.a";
    const { stages } = await run(sql, { partitions: 4, reduceBytes: 2_000 });
    ok(stages.at(-1)?.parts.every(({ slice }) => slice.by === "partition" && slice.of === undefined));
  });

  for (const [name, options] of [
    ["text.csv", "(header)"],
    ["text.json", "(format json)"],
    ["bare.csv", "(header false)"],
  ] as const)
    test(`over one text file (${name}) reads it in several tasks`, async () => {
      const odd = `case when range % 9 = 0 then E',\n"' else '' end`;
      const select = `select range as a, 'x"' || range || ${odd} as s from range(5000)`;
      await (await oracle).run(`copy (${select}) to '${runs.folder}/${name}' ${options}`);
      const [number, text] = name === "bare.csv" ? ["column0", "column1"] : ["a", "s"];
      const sql = `select ${number} % 7 as k, sum(${number}) as n, max(${text}) as m, count(*) as c from '${runs.folder}/${name}' group by 1`;
      const { stages } = await run(sql);
      ok((stages[0]?.parts.length ?? 0) > 2, `${stages[0]?.parts.length} tasks`);
    });

  test("over nothing has columns and no rows", async () => {
    const { paths } = await run("select b, sum(a) from 't.parquet' where a < 0 group by b order by b");
    ok(paths.length > 0);
  });
});
