import { deepEqual, equal, throws } from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { LocalRuns } from "#doors/batch/testing/local-run.ts";
import { compare, openOracle } from "#doors/batch/testing/oracle.ts";
import { realClock } from "#testing/real-clock.ts";
import { col, count, countDistinct, lit, max, rowNumber, sql, sum } from "./expression.ts";
import { dataset, type Dataset } from "./dataset.ts";

type Event = { user: number; country: string; ms: number };

describe("a dataset", () => {
  let runs: LocalRuns;
  const oracle = openOracle();
  before(async () => {
    runs = await LocalRuns.open(realClock, 1);
    const columns = "range % 50 as user, ['fr', 'de', 'it''s'][range % 3 + 1] as country, range as ms";
    await (
      await oracle
    ).run(`copy (select ${columns} from range(5000)) to '${runs.folder}/e.parquet' (row_group_size 2048)`);
    await (
      await oracle
    ).run(`copy (select range as user, 'u' || range as name from range(50)) to '${runs.folder}/u.csv' (header)`);
  });
  after(async () => {
    await runs[Symbol.asyncDispose]();
  });

  const events = (): Dataset<Event> => dataset.parquet<Event>(`${runs.folder}/*.parquet`);
  const answers = async (query: { toSql(): string }, isOrdered = false): Promise<readonly string[]> => {
    const text = query.toSql();
    const answer = await runs.run(text, { splitBytes: 5_000, broadcastBytes: 100, partitions: 2, reduceBytes: 1 });
    equal(answer.plan.how.kind, "stages");
    const { isSame, got, want } = await compare(await oracle, text, answer, isOrdered);
    deepEqual(isSame ? [] : got, isSame ? [] : want);
    return want;
  };

  test("filters, joins, groups and sorts as its SQL does", async () => {
    const users = dataset.csv<{ user: number; name: string }>(`${runs.folder}/u.csv`, { header: true });
    const query = events()
      .where(col("ms").gt(100).and(col("country").ne("de")))
      .join(users, "user")
      .groupBy("country")
      .agg({ n: count(), users: countDistinct("user"), most: max("ms"), twice: sum(col("ms").mul(2)) })
      .sort("country");
    equal((await answers(query, true)).length, 2);
  });

  test("takes SQL wherever an expression is, and quotes what is put into it", async () => {
    const name = "it's";
    const query = events()
      .where(sql`country = ${name} or ${col("ms")} < ${3}`)
      .select("user", "ms")
      .distinct();
    equal((await answers(query)).length > 1_000, true);
  });

  test("has windows, unions and limits", async () => {
    const first = events()
      .with({ nth: rowNumber().over({ partitionBy: ["user"], orderBy: [col("ms").desc()] }) })
      .where(col("nth").le(2))
      .select("user", "ms");
    equal((await answers(first.union(first).sort("user", "ms").limit(10, 5), true)).length, 10);
  });

  test("never lets a value become SQL", () => {
    equal(lit("'; drop table x; --").sql, "'''; drop table x; --'");
    equal(col('a" or 1=1').sql, '"a"" or 1=1"');
    equal(sql`x = ${"a'b"}`.sql, "x = 'a''b'");
    throws(() => col("x").as("INT) --"), TypeError);
    throws(() => dataset.csv("x.csv", { "header=true, x": 1 }), TypeError);
    throws(() => events().limit(1.5), TypeError);
  });
});
