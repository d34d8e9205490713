/** The judge of staged queries: the same engine in one process, over the same files. */
import type { Random } from "#base/random.ts";
import { uncarry } from "#doors/batch/plan/column-types.ts";
import { columnName } from "#doors/batch/plan/quoting.ts";
import type { LocalAnswer } from "./local-run.ts";
import type { DuckDBConnection } from "@duckdb/node-api";

export async function openOracle(): Promise<DuckDBConnection> {
  const { DuckDBInstance } = await import("@duckdb/node-api");
  const connection = await (await DuckDBInstance.create(":memory:", { threads: "1" })).connect();
  await connection.run("set timezone='UTC'");
  return connection;
}

/** Values repeat, every tenth is NULL, doubles are multiples of a quarter: sums are exact in any order. */
export async function writeOracleTables(
  connection: DuckDBConnection,
  folder: string,
  random: Random,
): Promise<readonly string[]> {
  const names = ["t0", "t1", "t2"];
  const tables: string[] = [];
  for (const [k, name] of names.entries()) {
    const rows = [random.between(200, 400), random.between(60, 200), random.between(1, 40)][k] ?? 0;
    const salt = random.below(1_000);
    const r = (n: number, of: number): string => `(hash(range + ${salt}, ${n}) % ${of})::BIGINT`;
    const orNull = (n: number, sql: string): string => `case when ${r(n + 100, 10)} = 0 then NULL else ${sql} end`;
    await connection.run(
      `copy (select range as id, ${orNull(1, `${r(1, 12)}::INTEGER`)} as i, ${orNull(2, r(2, 60))} as j, ` +
        `${orNull(3, `['a', 'b', 'ab', 'it''s', 'Äx', 'aa', '', 'zeta'][${r(3, 8)} + 1]`)} as s, ` +
        `${orNull(4, `(${r(4, 8_000)} / 100)::DECIMAL(10,2)`)} as d, ` +
        `${orNull(5, `case ${r(5, 30)} when 0 then 'nan'::DOUBLE when 1 then -0.0::DOUBLE when 2 then 0.0::DOUBLE else ${r(6, 400)} / 4.0 end`)}::DOUBLE as f, ` +
        `${orNull(7, `DATE '2024-01-01' + ${r(7, 40)}::INTEGER`)} as dt, ` +
        `${orNull(8, `TIMESTAMP '2024-01-01 00:00:00' + to_minutes(${r(8, 90_000)})`)} as ts, ` +
        `${orNull(9, `${r(9, 2)} = 1`)} as b from range(${rows})) to '${folder}/${name}.parquet' (format parquet, row_group_size 64)`,
    );
    tables.push(`'${folder}/${name}.parquet'`);
  }
  return tables;
}

export type Comparison = {
  readonly isSame: boolean;
  readonly want: readonly string[];
  readonly got: readonly string[];
};

/** Same: the same rows, in the same order where there is one. */
export async function compare(
  connection: DuckDBConnection,
  sql: string,
  answer: LocalAnswer,
  isOrdered: boolean,
): Promise<Comparison> {
  const columns = answer.types.map((type, i) => uncarry(columnName(i), type)).join(", ");
  const paths = answer.paths.map((path) => `'${path}'`).join(", ");
  const want = await rowsOf(connection, sql);
  const got = await rowsOf(connection, `select ${columns} from read_parquet([${paths}])`);
  const [a, b] = isOrdered ? [want, got] : [want.toSorted(), got.toSorted()];
  return { isSame: a.length === b.length && a.every((row, i) => row === b[i]), want: a, got: b };
}

export async function rowsOf(connection: DuckDBConnection, sql: string): Promise<string[]> {
  const rows = (await connection.runAndReadAll(sql)).getRowsJson();
  return rows.map((row) => JSON.stringify(row.map(comparable)));
}

/** Nine digits: what is added up in another order may differ beyond them. */
function comparable(value: unknown): unknown {
  if (typeof value === "number") return Number.isFinite(value) ? Number(value.toPrecision(9)) + 0 : String(value);
  return value;
}
