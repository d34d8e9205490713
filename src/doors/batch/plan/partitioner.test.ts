import { deepEqual, equal, notEqual } from "node:assert/strict";
import { test } from "node:test";
import { openOracle } from "#doors/batch/testing/oracle.ts";
import { familyOf, partitionSql } from "./partitioner.ts";
import type { PlanType } from "./plan-json.ts";

const oracle = await openOracle();

async function partitions(values: readonly string[], type: PlanType, count = 7): Promise<readonly number[]> {
  const rows = values.map((value, i) => `(${i}, ${value})`).join(", ");
  const sql = `select ${partitionSql([{ sql: "v", type }], count)} from (values ${rows}) t(i, v) order by i`;
  return (await oracle.runAndReadAll(sql)).getRowsJson().map(([partition]) => Number(partition));
}

test("partitions of known values never change", async () => {
  // Packs that are in stores were written by these: another answer makes two versions disagree about a key.
  deepEqual(await partitions(["0", "1", "2", "-1", "123456789012", "NULL"], { id: "BIGINT" }, 64), golden.integers);
  deepEqual(await partitions(["''", "'a'", "'Äx'", "NULL"], { id: "VARCHAR" }, 64), golden.texts);
});

const golden = { integers: [0, 23, 47, 55, 34, 0], texts: [58, 2, 20, 0] };

test("equal integers of every width are in one partition", async () => {
  const types = ["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"];
  const found = await Promise.all(types.map((id) => partitions([`42::${id}`], { id })));
  equal(new Set(found.flat()).size, 1);
  equal(new Set(types.map((id) => familyOf({ id }))).size, 1);
});

test("both zeros of a double are in one partition, and so is every NaN", async () => {
  const [plus, minus, nan, other] = await partitions(
    ["0.0::DOUBLE", "-0.0::DOUBLE", "'nan'::DOUBLE", "'nan'::DOUBLE"],
    { id: "DOUBLE" },
    64,
  );
  equal(plus, minus);
  equal(nan, other);
});

test("decimals of different scales are of different families", () => {
  const decimal = (scale: number): PlanType => ({ id: "DECIMAL", type_info: { width: 10, scale } });
  notEqual(familyOf(decimal(1)), familyOf(decimal(2)));
  equal(familyOf(decimal(2)), familyOf({ id: "DECIMAL", type_info: { width: 18, scale: 2 } }));
});

test("many keys are spread over all partitions", async () => {
  for (const [type, value] of [
    [{ id: "BIGINT" }, "range"],
    [{ id: "VARCHAR" }, "'key ' || range"],
    [{ id: "DATE" }, "DATE '2000-01-01' + range::INTEGER"],
  ] as const) {
    const sql = `select count(*) from range(8000) t(range) group by ${partitionSql([{ sql: value, type }], 8)}`;
    const counts = (await oracle.runAndReadAll(sql)).getRowsJson().map(([count]) => Number(count));
    equal(counts.length, 8, type.id);
    equal(
      counts.every((count) => count > 700 && count < 1_300),
      true,
      `${type.id}: ${counts.join(" ")}`,
    );
  }
});
