/** What is measured: tables that DuckDB makes, and queries over them with a sum that tells answers apart. */
import type { DuckDBConnection } from "@duckdb/node-api";
import { linesOptions } from "#doors/batch/plan/query-sources.ts";
import { tpchQueries } from "#doors/batch/testing/tpch-queries.ts";
import { tpchNames, writeTpchTables } from "#doors/batch/testing/tpch-tables.ts";

export type Sizes = { readonly splitBytes?: number; readonly broadcastBytes?: number };

export type Workload = {
  readonly name: string;
  /** Run one behind the other, measured together. `$name` stands for a table's file. */
  readonly queries: readonly string[];
  /** The same for DuckDB alone where it reads a table in another way. */
  readonly rawQueries?: readonly string[];
  readonly sizes?: Sizes;
  /** One thread of DuckDB is the measure: ours is one task. */
  readonly isOneTask?: boolean;
  /** The result's first column is in order. */
  readonly isSorted?: boolean;
  /** Ours by that of DuckDB alone, at most. */
  readonly ratioMax?: number;
  /** How many times quicker than PySpark. */
  readonly sparkMin: number;
  readonly write: (connection: DuckDBConnection, folder: string, scale: number) => Promise<void>;
};

const rowGroup = 122_880;

const copied =
  (name: string, select: (rows: number) => string, rowsAtOne: number): Workload["write"] =>
  async (connection, folder, scale) => {
    const rows = Math.round(rowsAtOne * scale);
    await connection.run(`copy (${select(rows)}) to '${folder}/${name}.parquet' (row_group_size ${rowGroup})`);
  };

/** As db-benchmark has them: some keys with few values, some with many. */
const groups = copied(
  "groups",
  (rows) => {
    const few = (n: number): string => `hash(range, ${n}) % 100`;
    const many = (n: number): string => `hash(range, ${n}) % ${Math.max(1, Math.floor(rows / 100))}`;
    return (
      `select 'id' || lpad((${few(1)})::varchar, 3, '0') as id1, 'id' || lpad((${few(2)})::varchar, 3, '0') as id2, ` +
      `'id' || lpad((${many(3)})::varchar, 10, '0') as id3, (${few(4)})::integer as id4, (${few(5)})::integer as id5, ` +
      `(${many(6)})::integer as id6, (hash(range, 7) % 5 + 1)::integer as v1, (hash(range, 8) % 15 + 1)::integer as v2, ` +
      `((hash(range, 9) % 100000000) / 1000000.0)::decimal(9,6) as v3 from range(${rows})`
    );
  },
  1e7,
);

const pairs: Workload["write"] = async (connection, folder, scale) => {
  for (const [name, salt] of [
    ["left", 1],
    ["right", 2],
  ] as const)
    await copied(
      name,
      (rows) =>
        `select (range * 7919 + ${salt}) % ${rows} as id, (hash(range, ${salt}) % 1000)::integer as v from range(${rows})`,
      1e7,
    )(connection, folder, scale);
};

/** 100 bytes a row, of which ten are the key, as gensort writes them. */
const records = copied(
  "records",
  (rows) =>
    `select substr(md5(range::varchar), 1, 10) as k, ` +
    `md5(hash(range, 1)::varchar) || md5(hash(range, 2)::varchar) || substr(md5(hash(range, 3)::varchar), 1, 26) as v from range(${rows})`,
  1e7,
);

/** Frequencies as in language: the logarithm of a word's rank is evenly spread. */
const words: Workload["write"] = async (connection, folder, scale) => {
  const word = (n: number): string => `'w' || exp((hash(range, ${n}) % 1000000) / 1000000.0 * 10.8)::integer`;
  const line = Array.from({ length: 10 }, (_, i) => word(i)).join(" || ' ' || ");
  await connection.run(
    `copy (select ${line} as line from range(${Math.round(4_300_000 * scale)})) to '${folder}/words.txt' (format csv, header false, quote '', delimiter '\u0001')`,
  );
};

const countWords = (table: string): string =>
  `select word, count(*) as n from (select unnest(string_split(line, ' ')) as word from ${table}) group by word`;

const groupQueries = [
  "select id1, sum(v1) as v1 from $groups group by id1",
  "select id3, sum(v1) as v1, avg(v3) as v3 from $groups group by id3",
  "select id6, sum(v1) as v1, sum(v2) as v2, sum(v3) as v3 from $groups group by id6",
];

export const workloads: readonly Workload[] = [
  { name: "group-by q1 q3 q5", write: groups, queries: groupQueries, sparkMin: 4 },
  {
    name: "group-by, one task",
    write: groups,
    queries: groupQueries,
    sizes: { splitBytes: 1e12 },
    isOneTask: true,
    ratioMax: 1.05,
    sparkMin: 4,
  },
  {
    name: "group-by, unique keys",
    write: groups,
    queries: ["select id1, id2, id3, id4, id5, id6, sum(v3) as v3, count(*) as n from $groups group by all"],
    ratioMax: 1.25,
    sparkMin: 4,
  },
  {
    name: "join 1e7 x 1e7",
    write: pairs,
    queries: ["select count(*) as n, sum(l.v * r.v) as s from $left l join $right r using (id)"],
    ratioMax: 1.7,
    sparkMin: 4,
  },
  {
    name: "sort 1 GB",
    write: records,
    queries: ["select k, v from $records order by k"],
    isSorted: true,
    ratioMax: 1.3,
    sparkMin: 3,
  },
  {
    name: "word count 256 MB",
    write: words,
    queries: [countWords("read_lines('$folder/words.txt')")],
    rawQueries: [countWords(`read_csv('$folder/words.txt', ${linesOptions.join(", ")})`)],
    ratioMax: 1.1,
    sparkMin: 4,
  },
];

/** In stages whatever its size. */
export const tpch = (scale: number): Workload => ({
  name: `TPC-H ${scale}`,
  queries: tpchQueries.map((one) => one.replace(/\$(\w+)\$/g, "$$$1")),
  ratioMax: 1.5,
  sparkMin: 8,
  ...(scale < 10 && { sizes: { splitBytes: 6.4e6 * scale } }),
  write: async (connection, folder, smaller) => await writeTpchTables(connection, folder, scale * smaller, rowGroup),
});

const names = ["groups", "left", "right", "records", ...tpchNames];

/** With the files of a folder. */
export const queryIn = (query: string, folder: string): string =>
  names
    .toSorted((a, b) => b.length - a.length)
    .reduce((text, name) => text.replaceAll(`$${name}`, `'${folder}/${name}.parquet'`), query)
    .replaceAll("$folder", folder);
