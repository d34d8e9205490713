/** Whether two results are the same rows; of a sort also that ours is in order, as valsort checks it. */
import type { DuckDBConnection } from "@duckdb/node-api";

export type Answers = { readonly mine: readonly string[]; readonly theirs: string; readonly isSorted: boolean };

export async function sameAnswers(connection: DuckDBConnection, { mine, theirs, isSorted }: Answers): Promise<boolean> {
  const list = `[${mine.map((path) => `'${path}'`).join(", ")}]`;
  const columns = await rows(connection, `describe select * from read_parquet('${theirs}')`);
  const sums = async (files: string, names: readonly string[]): Promise<string> => {
    const values = columns.map(([, type], i) => comparable(`"${names[i]}"`, String(type)));
    const text = `select count(*), sum(hash(${values.join(", ")})::hugeint) from read_parquet(${files})`;
    return JSON.stringify(await rows(connection, text), (_key, value: unknown) =>
      typeof value === "bigint" ? String(value) : value,
    );
  };
  const own = columns.map((_, i) => `c${i}`);
  const given = columns.map(([name]) => String(name));
  if ((await sums(list, own)) !== (await sums(`'${theirs}'`, given))) return false;
  if (!isSorted) return true;
  const [[bad] = []] = await rows(
    connection,
    `select count(*) from (select c0, lag(c0) over () as before from read_parquet(${list})) where c0 < before`,
  );
  return Number(bad) === 0;
}

/** Nine digits of doubles: what is added up in another order may differ beyond them. Sums come as decimals in packs. */
function comparable(column: string, type: string): string {
  if (/^(DOUBLE|FLOAT)$/.test(type)) return `printf('%.8e', ${column})`;
  return `cast(${column} as VARCHAR)`;
}

async function rows(connection: DuckDBConnection, sql: string): Promise<readonly (readonly unknown[])[]> {
  return (await connection.runAndReadAll(sql)).getRows();
}
