/** From SQL to a plan: which files it reads, of what types, and how DuckDB would go about it. */
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { Fault } from "#base/fault.ts";
import { engineName, type PlanDocument } from "#doors/batch/documents.ts";
import { foreseeStages } from "#doors/batch/plan/cut/cut.ts";
import type { HeldFiles, SourceFiles } from "#doors/batch/grants/source-files.ts";
import { mapTable, type How, type MapFunction, type PlannedMap } from "#doors/batch/plan/map-function.ts";
import { findSources, type NamedSource } from "#doors/batch/plan/query-sources.ts";
import { quoteName, quoteText } from "#doors/batch/plan/quoting.ts";
import type { CutSettings } from "#doors/batch/plan/settings.ts";
import { sourceBytes, sourceTable, type Source, type SourceColumn } from "#doors/batch/plan/source.ts";
import { sourceSql } from "#doors/batch/plan/task-sql.ts";
import { Unsplittable } from "#doors/batch/plan/unsplittable.ts";
import { describeSource } from "./describe-source.ts";
import type { EngineRow, EngineStatement } from "./engine-protocol.ts";
import type { CutWish, TextCuts } from "./text-cuts.ts";
import { withNames, type RunsWork } from "./engines.ts";

export type Query = {
  readonly sql: string;
  readonly settings: CutSettings;
  /** Functions, each with the query whose rows it gets. */
  readonly maps?: readonly { readonly name: string; readonly sql: string; readonly function: MapFunction }[];
};

export type PreparePorts = {
  readonly engines: RunsWork;
  readonly files: SourceFiles;
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

export async function prepareQuery(query: Query, ports: PreparePorts): Promise<PlanDocument> {
  const { sql, settings, maps: given = [] } = query;
  using held = new DisposableStack();
  const state: Prepared = { named: [], sources: [], maps: [], far: [], held };
  for (const { name, sql: text, function: called } of given) {
    if (state.maps.some((one) => one.name === name))
      throw new Fault("invalid", "read query", { function: name, why: "two functions have this name" });
    const found = await findIn(text, state, settings, ports);
    const schema = await schemaOf(called.schema, ports);
    const { how, columns } = await planned(found, state, settings, ports);
    state.maps.push({ name, function: { ...called, schema }, columns, how });
  }
  const found = await findIn(sql, state, settings, ports);
  const { how, columns } = await planned(found, state, settings, ports);
  const { sources, maps } = state;
  return { version: 1, engine: engineName, sql, columns, sources, settings, how, ...(maps.length > 0 && { maps }) };
}

/** What was found out so far; queries of functions share their sources. */
type Prepared = {
  named: readonly NamedSource[];
  readonly sources: Source[];
  readonly maps: PlannedMap[];
  /** By source: where the engine reads what is not a file of this node. */
  readonly far: HeldFiles[];
  readonly held: DisposableStack;
};
type FoundQuery = { readonly query: string; readonly reads: readonly number[] };

async function findIn(
  sql: string,
  state: Prepared,
  { splitBytes }: CutSettings,
  ports: PreparePorts,
): Promise<FoundQuery> {
  if (sql.length > sqlLengthMax)
    throw new Fault("invalid", "read query", { lengthMax: sqlLengthMax, why: "it is longer" });
  const [tree] = await ask(ports, [], [one(`select json_serialize_sql(${quoteText(sql)})`)]);
  const names = state.maps.map(({ name }) => name);
  const { sources, rewritten, maps: reads } = findSources(textOf(tree), state.named, names);
  const before = state.named.length;
  state.named = sources;
  const [plain] = await Promise.all([
    ask(ports, [], [one(`select json_deserialize_sql(${quoteText(rewritten)}::JSON)`)]),
    describeAll(sources.slice(before), state, splitBytes, ports),
  ]);
  return { query: textOf(plain[0]), reads };
}

async function describeAll(
  sources: readonly NamedSource[],
  state: Prepared,
  splitBytes: number,
  ports: PreparePorts,
): Promise<void> {
  for (const source of sources) {
    const files = await ports.files.find(source.patterns, ports.signal);
    const far = state.held.use(await ports.files.hold(files, "plan", ports.signal));
    state.far.push(far);
    const described = { files, pathOf: far.pathOf };
    state.sources.push(
      await describeSource(source, described, {
        ask: (paths, statements) => ask(ports, paths, statements, [], [far]),
        cuts: (wish) => cutsOf(wish, ports),
        splitBytes,
      }),
    );
  }
}

/** Types under DuckDB's own names. */
async function schemaOf(schema: readonly SourceColumn[], ports: PreparePorts): Promise<readonly SourceColumn[]> {
  const columns = schema.map(({ name, type }) => `cast(NULL as ${type}) as ${quoteName(name)}`).join(", ");
  const [rows = []] = await ask(ports, [], [many(`describe select ${columns}`)]);
  return columnsOf(rows);
}

const columnsOf = (rows: readonly EngineRow[]): readonly SourceColumn[] =>
  rows.map(([name, type]) => ({ name: String(name), type: String(type) }));

async function planned(
  { query, reads }: FoundQuery,
  { sources: named, maps, far }: Prepared,
  settings: CutSettings,
  ports: PreparePorts,
): Promise<{ readonly how: How; readonly columns: readonly SourceColumn[] }> {
  const sources = named.map((source, i) => hereAs(source, far[i]));
  const paths = sources.flatMap(({ files }) => files.map(({ path }) => path));
  const tables = [...sources.flatMap((source, i) => standIn(source, i)), ...maps.flatMap(mapStandIn)];
  const columns = columnsOf((await ask(ports, paths, [...tables, many(`describe ${query}`)], [], far)).at(-1) ?? []);
  const asOne = (why: string): How => ({ kind: "one", why, sql: query, ...(reads.length > 0 && { maps: reads }) });
  const bytes = sources.reduce((sum, source) => sum + sourceBytes(source), 0);
  if (bytes <= settings.splitBytes) return { columns, how: asOne("its sources are small") };
  try {
    const plan = `json_serialize_plan(${quoteText(query)}, optimize := true, skip_null := true, skip_empty := false)`;
    const written = async (without: readonly string[]): Promise<string> => {
      const off = `set disabled_optimizers=${quoteText(without.join(","))}`;
      return textOf((await ask(ports, paths, [...tables, one(`select ${plan}`)], [off], far)).at(-1));
    };
    // Some plans, as with common tables behind each other, can be written down with all columns only.
    const first = await written(disabledOptimizers);
    const text = /^\{"error":\s*true/.test(first) ? await written([...disabledOptimizers, "unused_columns"]) : first;
    const how: How = { kind: "stages", plan: far.reduce((all, held) => held.named(all), text) };
    foreseeStages({ how, columns, maps, sources: named, settings });
    return { columns, how };
  } catch (error) {
    if (!(error instanceof Unsplittable)) throw error;
    return { columns, how: asOne(`${error.message} cannot be cut into stages`) };
  }
}

/** The same source as files that the engine can read now. */
export const hereAs = (source: Source, held: Pick<HeldFiles, "pathOf"> | undefined): Source =>
  held ? { ...source, files: source.files.map((file) => ({ ...file, path: held.pathOf(file) })) } : source;

const standInRows = 100_000;

/** How many rows a function returns is not known before. */
const mapStandIn = ({ function: { schema } }: PlannedMap, index: number): readonly EngineStatement[] => [
  {
    sql: `create table ${mapTable(index)} (${schema.map(({ name, type }) => `${quoteName(name)} ${type}`).join(", ")})`,
  },
  { sql: `insert into ${mapTable(index)} select ${schema.map(() => "NULL").join(", ")} from range(${standInRows})` },
];

/**
 * A table that DuckDB plans with instead of the source. Of plain Parquet it is a view, so that sizes are known; of all
 * else it is a table with as many rows as there may be.
 */
function standIn(source: Source, index: number): readonly EngineStatement[] {
  const name = sourceTable(index);
  const all = source.files.map((_, file) => ({ file }));
  if (source.format === "parquet" && source.options.length === 0)
    return [{ sql: `create view ${name} as select * from read_parquet([${pathsOf(source)}])` }];
  const rows = Math.min(standInRows, Math.ceil(sourceBytes(source) / 50));
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
  far: readonly HeldFiles[] = [],
): Promise<readonly (readonly EngineRow[])[]> {
  const limits = { memoryBytes: planMemoryBytes, spillBytes: planMemoryBytes };
  const spillFolder = join(scratch, `spill-${randomUUID()}`);
  try {
    return (await engines.run({ paths, spillFolder, ...limits, settings, statements }, signal)).rows;
  } catch (error) {
    throw withNames(error, far);
  }
}

async function cutsOf(wish: CutWish, { engines, signal, scratch }: PreparePorts): Promise<TextCuts> {
  const limits = { memoryBytes: planMemoryBytes, spillBytes: planMemoryBytes };
  const spillFolder = join(scratch, `cuts-${randomUUID()}`);
  const work = { paths: [], spillFolder, ...limits, settings: [], statements: [], cutsOf: [wish] };
  return (await engines.run(work, signal)).cuts?.[0] ?? { head: 0, at: [] };
}
