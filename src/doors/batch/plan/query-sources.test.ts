import { deepEqual, equal, throws } from "node:assert/strict";
import { test } from "node:test";
import { openOracle } from "#doors/batch/testing/oracle.ts";
import { findSources } from "./query-sources.ts";
import { quoteText } from "./quoting.ts";

const oracle = await openOracle();

async function ask(query: string): Promise<string> {
  const text = (await oracle.runAndReadAll(query)).getRowsJson()[0]?.[0];
  return typeof text === "string" ? text : "";
}

async function found(sql: string) {
  const { sources, rewritten } = findSources(await ask(`select json_serialize_sql(${quoteText(sql)})`));
  return { sources, sql: await ask(`select json_deserialize_sql(${quoteText(rewritten)}::JSON)`) };
}

test("files become tables, wherever they are named", async () => {
  const { sources, sql } = await found(
    "with c as (select * from 'a/*.parquet') select * from c, 'b.csv' x " +
      "where i in (select j from read_json('c.json')) and k in (select k from 'b.csv')",
  );
  deepEqual(sources, [
    { format: "parquet", patterns: ["a/*.parquet"], options: [] },
    { format: "csv", patterns: ["b.csv"], options: [] },
    { format: "json", patterns: ["c.json"], options: [] },
  ]);
  equal(/'|\*\.parquet|b\.csv/.test(sql.replaceAll("*", "")), false, sql);
});

test("a file's table is called after the file, unless the query calls it otherwise", async () => {
  const { sql } = await found("select events.a, y.b from 'data/events.parquet' join 'other.csv' as y on a = b");
  equal(sql.includes("s0 AS events"), true, sql);
  equal(sql.includes("s1 AS y"), true, sql);
});

test("options of readers are kept as values", async () => {
  const { sources } = await found(
    "select * from read_csv(['a.csv', 'b.csv'], header=true, delim=';', skip=2, nullstr='it''s')",
  );
  deepEqual(sources, [
    { format: "csv", patterns: ["a.csv", "b.csv"], options: ["header=true", "delim=';'", "skip=2", "nullstr='it''s'"] },
  ]);
});

test("numbers in a query keep all their digits", async () => {
  const { sql } = await found(
    "select 170141183460469231731687303715884105727 as a, 9007199254740993 as b from 'x.parquet'",
  );
  equal(sql.includes("170141183460469231731687303715884105727"), true, sql);
  equal(sql.includes("9007199254740993"), true, sql);
});

test("what is no single SELECT is refused with a reason", async () => {
  await throwsOn("select 1; select 2", /give one SELECT/);
  await throwsOn("create table t(a int)", /Only SELECT/);
  await throwsOn("selec 1", /syntax error/);
  await throwsOn("select * from read_parquet(concat('a', 'b'))", /name files by texts/);
  await throwsOn("select * from read_csv('a.csv', header=(select true))", /an option of a file/);
});

async function throwsOn(sql: string, why: RegExp): Promise<void> {
  const tree = await ask(`select json_serialize_sql(${quoteText(sql)})`);
  throws(() => findSources(tree), why);
}
