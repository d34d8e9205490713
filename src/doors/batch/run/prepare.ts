/** From SQL to a plan: which files it reads, of what types, and how DuckDB would go about it. */
import { Fault } from "#base/fault.ts";
import { engineName, type PlanDocument } from "#doors/batch/documents.ts";
import { foreseeStages } from "#doors/batch/plan/cut/cut.ts";
import { sourceTable } from "#doors/batch/plan/cut/source.ts";
import { parsePlan } from "#doors/batch/plan/plan-json.ts";
import { findSources } from "#doors/batch/plan/query-sources.ts";
import { quoteText } from "#doors/batch/plan/quoting.ts";
import type { CutSettings } from "#doors/batch/plan/settings.ts";
import { sourceBytes, type Source, type SourceColumn } from "#doors/batch/plan/source.ts";
import { sourceSql } from "#doors/batch/plan/task-sql.ts";
import { Unsplittable } from "#doors/batch/plan/unsplittable.ts";
import { describeSource } from "./describe-source.ts";
import type { EngineRow, EngineStatement } from "./engine-protocol.ts";
import type { Engines } from "./engines.ts";

export type Query = {
  readonly sql: string;
  /** Where names of files begin that are not absolute. */
  readonly folder: string;
  readonly settings: CutSettings;
};

export type PreparePorts = {
  readonly engines: Engines;
  readonly signal: AbortSignal;
  /** A folder of this request's own. */
  readonly scratch: string;
};

const sqlLengthMax = 1_000_000;
const planMemoryBytes = 512 * 1024 * 1024;

/** They make plans smaller or quicker, and cannot be written down as SQL again. */
const disabledOptimizers = [
  "compressed_materialization",
  "join_filter_pushdown",
  "late_materialization",
  "column_lifetime",
  "statistics_propagation",
  "common_subplan",
  "build_side_probe_side",
  "reorder_filter",
  "top_n_window_elimination",
  "window_self_join",
];

export async function prepareQuery({ sql, folder, settings }: Query, ports: PreparePorts): Promise<PlanDocument> {
  if (sql.length > sqlLengthMax)
    throw new Fault("invalid", "read query", { lengthMax: sqlLengthMax, why: "it is longer" });
  const [tree] = await ask(ports, [], [one(`select json_serialize_sql(${quoteText(sql)})`)]);
  const { sources: named, rewritten } = findSources(textOf(tree));
  const sources: Source[] = [];
  for (const source of named)
    sources.push(await describeSource(source, folder, (paths, statements) => ask(ports, paths, statements)));
  const paths = sources.flatMap(({ files }) => files.map(({ path }) => path));
  const tables = sources.flatMap((source, i) => standIn(source, i));
  const [plain] = await ask(ports, [], [one(`select json_deserialize_sql(${quoteText(rewritten)}::JSON)`)]);
  const query = textOf(plain);
  const columns = (await ask(ports, paths, [...tables, many(`describe ${query}`)])).at(-1) ?? [];
  const about = {
    version: 1,
    engine: engineName,
    sql,
    columns: columns.map(([name, type]) => ({ name: String(name), type: String(type) })),
    sources,
    settings,
  } as const;
  const how = await planned({ query, tables, paths, ...about }, ports);
  return { ...about, how };
}

type Bound = {
  readonly query: string;
  readonly tables: readonly EngineStatement[];
  readonly paths: readonly string[];
  readonly sources: readonly Source[];
  readonly columns: readonly SourceColumn[];
  readonly settings: CutSettings;
};

async function planned(bound: Bound, ports: PreparePorts): Promise<PlanDocument["how"]> {
  const { query, tables, paths, sources, settings } = bound;
  const bytes = sources.reduce((sum, source) => sum + sourceBytes(source), 0);
  if (bytes <= settings.splitBytes) return { kind: "one", why: "its sources are small", sql: query };
  try {
    const plan = `json_serialize_plan(${quoteText(query)}, optimize := true, skip_null := true, skip_empty := true)`;
    const off = `set disabled_optimizers=${quoteText(disabledOptimizers.join(","))}`;
    const text = textOf((await ask(ports, paths, [...tables, one(`select ${plan}`)], [off])).at(-1));
    foreseeStages({ plan: parsePlan(text), sources, settings });
    return { kind: "stages", plan: text };
  } catch (error) {
    if (!(error instanceof Unsplittable)) throw error;
    return { kind: "one", why: `${error.message} cannot be cut into stages`, sql: query };
  }
}

/**
 * A table that DuckDB plans with instead of the source. Of plain Parquet it is a view, so that sizes are known; of all
 * else it is a table with as many rows as there may be.
 */
function standIn(source: Source, index: number): readonly EngineStatement[] {
  const name = sourceTable(index);
  const all = source.files.map((_, file) => ({ file }));
  if (source.format === "parquet" && source.options.length === 0)
    return [{ sql: `create view ${name} as select * from read_parquet([${pathsOf(source)}])` }];
  const rows = Math.min(100_000, Math.ceil(sourceBytes(source) / 50));
  const nulls = source.columns.map(() => "NULL").join(", ");
  return [
    { sql: `create table ${name} as select * from (${sourceSql(source, all)}) limit 0` },
    { sql: `insert into ${name} select ${nulls} from range(${rows})` },
  ];
}

const pathsOf = ({ files }: Source): string => files.map(({ path }) => quoteText(path)).join(", ");

const one = (sql: string): EngineStatement => ({ sql, rowsMax: 1 });
const many = (sql: string): EngineStatement => ({ sql, rowsMax: 10_000 });

function textOf(rows: readonly EngineRow[] | undefined): string {
  const text = rows?.[0]?.[0];
  if (typeof text !== "string") throw new Fault("internal", "plan query", { why: "the engine gave no text" });
  return text;
}

async function ask(
  { engines, signal, scratch }: PreparePorts,
  paths: readonly string[],
  statements: readonly EngineStatement[],
  settings: readonly string[] = [],
): Promise<readonly (readonly EngineRow[])[]> {
  const limits = { memoryBytes: planMemoryBytes, spillBytes: planMemoryBytes };
  const spillFolder = `${scratch}/spill`;
  return (await engines.run({ paths, spillFolder, ...limits, settings, statements }, signal)).rows;
}
