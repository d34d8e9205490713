import { deepEqual, equal, throws } from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openOracle } from "#doors/batch/testing/oracle.ts";
import { carry, typeSql, uncarry } from "./column-types.ts";
import { parsePlan, type PlanType } from "./plan-json.ts";

const decimal = (width: number, scale: number): PlanType => ({ id: "DECIMAL", type_info: { width, scale } });
const list = (child: PlanType): PlanType => ({ id: "LIST", type_info: { child_type: child } });
const values: readonly (readonly [PlanType, string])[] = [
  [{ id: "BOOLEAN" }, "true"],
  [{ id: "TINYINT" }, "-128"],
  [{ id: "UBIGINT" }, "18446744073709551615"],
  [{ id: "HUGEINT" }, "99999999999999999999999999999999999999"],
  [{ id: "UHUGEINT" }, "340282366920938463463374607431768211455"],
  [{ id: "FLOAT" }, "1.5"],
  [{ id: "DOUBLE" }, "'-inf'"],
  [decimal(38, 5), "'123456789012345678901234567890123.45678'"],
  [{ id: "VARCHAR" }, "'it''s Ä'"],
  [{ id: "BLOB" }, "'\\x00\\xFF'"],
  [{ id: "DATE" }, "'0044-03-15 (BC)'"],
  [{ id: "TIME" }, "'12:13:14.123456'"],
  [{ id: "TIME WITH TIME ZONE" }, "'12:13:14.123456+02'"],
  [{ id: "TIMESTAMP" }, "'2020-01-01 01:02:03.123456'"],
  [{ id: "TIMESTAMP_S" }, "'2020-01-01 01:02:03'"],
  [{ id: "TIMESTAMP_MS" }, "'2020-01-01 01:02:03.123'"],
  [{ id: "TIMESTAMP_NS" }, "'2020-01-01 01:02:03.123456789'"],
  [{ id: "TIMESTAMP WITH TIME ZONE" }, "'2020-01-01 01:02:03.123456+01'"],
  [{ id: "INTERVAL" }, "'1 year 2 days 3.000001 seconds'"],
  [{ id: "UUID" }, "'0195a4a0-0000-7000-8000-000000000000'"],
  [{ id: "BIT" }, "'0101'"],
  [list({ id: "INTEGER" }), "[1, NULL]"],
  [
    { id: "STRUCT", type_info: { child_types: [{ first: "a b", second: { id: "DATE" } }] } },
    `{'a b': DATE '2020-01-01'}`,
  ],
];

test("a value of every type comes back from a pack as it was", async () => {
  const folder = await mkdtemp(join(tmpdir(), "millrace-types-"));
  const oracle = await openOracle();
  try {
    for (const [type, value] of values) {
      const name = typeSql(type);
      const path = join(folder, "x.parquet");
      const both = [`cast(${value} as ${name})`, `cast(NULL as ${name})`].map((sql, i) => `${sql} as v${i}`).join(", ");
      await oracle.run(
        `copy (select ${carry("v0", type)} as v0, ${carry("v1", type)} as v1 from (select ${both})) to '${path}'`,
      );
      const look = (from: string): string => `select typeof(v0), v0::VARCHAR, v1::VARCHAR from (${from})`;
      const want = (await oracle.runAndReadAll(look(`select ${both}`))).getRowsJson();
      const read = `select ${uncarry("v0", type)} as v0, ${uncarry("v1", type)} as v1 from '${path}'`;
      deepEqual((await oracle.runAndReadAll(look(read))).getRowsJson(), want, name);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test("types that a pack would change are refused", () => {
  throws(() => typeSql({ id: "UNION" }), /the type UNION/);
  throws(() => carry("c0", list({ id: "HUGEINT" })), /between tasks/);
});

test("numbers of a plan keep all their digits", () => {
  const plan = parsePlan(
    `{"error":false,"plans":[{"type":"X","limit":9007199254740993,"offset":5,"name":"\\"value\\":NaN"}]}`,
  );
  equal(String(plan.limit), "9007199254740993");
  equal(plan.offset, 5);
  equal(plan.name, '"value":NaN');
});
