/** What files of a source hold: their sizes and columns, once and for all. */
import { isDeepStrictEqual } from "node:util";
import { Fault } from "#base/fault.ts";
import { filesMax } from "#doors/batch/grants/node-files.ts";
import { quoteName, quoteText } from "#doors/batch/plan/quoting.ts";
import { linesOptions, type NamedSource } from "#doors/batch/plan/query-sources.ts";
import type { Source, SourceColumn, SourceFile } from "#doors/batch/plan/source.ts";
import type { EngineRow, EngineStatement } from "./engine-protocol.ts";
import type { CutWish, TextCuts } from "./text-cuts.ts";

export type Ask = (
  paths: readonly string[],
  statements: readonly EngineStatement[],
) => Promise<readonly (readonly EngineRow[])[]>;

/** `pathOf` says where the engine finds a file that has been found. */
export type Described = { readonly files: readonly SourceFile[]; readonly pathOf: (file: SourceFile) => string };

export type DescribePorts = {
  readonly ask: Ask;
  /** Where a text file may be cut. */
  readonly cuts: (wish: CutWish) => Promise<TextCuts>;
  readonly splitBytes: number;
};

export async function describeSource(named: NamedSource, files: Described, ports: DescribePorts): Promise<Source> {
  switch (named.format) {
    case "parquet":
      return await describeParquet(named, files, ports.ask);
    case "csv":
      return await describeText(named, files, ports, "read_csv");
    case "json":
      return await describeText(named, files, ports, "read_json");
  }
}

const listed = ({ files, pathOf }: Described): string => `[${files.map((one) => quoteText(pathOf(one))).join(", ")}]`;

async function describeParquet(named: NamedSource, described: Described, ask: Ask): Promise<Source> {
  const { files, pathOf } = described;
  const paths = files.map(pathOf);
  const list = listed(described);
  const read = ["read_parquet(", [list, ...named.options].join(", "), ")"].join("");
  const [columns = [], sizes = [], shapes = []] = await ask(paths, [
    { sql: `describe select * from ${read}`, rowsMax: 10_000 },
    { sql: `select file_name, num_rows, num_row_groups from parquet_file_metadata(${list})`, rowsMax: filesMax },
    {
      sql:
        `select shape, min(file_name), count(*) from (select file_name, ` +
        `string_agg(name || ' ' || coalesce(type, '') || ` +
        `' ' || coalesce(logical_type, '') || coalesce(num_children::VARCHAR, ''), ',') as shape ` +
        `from parquet_schema(${list}) group by file_name) group by shape order by count(*) desc, 2`,
      rowsMax: filesMax,
    },
  ]);
  const [, other] = shapes;
  if (other && !named.options.some((option) => option.startsWith("union_by_name")))
    throw new Fault("invalid", "read files", {
      file: String(other[1]),
      why: `its columns are not those of ${String(shapes[0]?.[1])}; write read_parquet(..., union_by_name=true) to put them together`,
    });
  const about = new Map(
    sizes.map(([name, rows, groups]) => [String(name), { rows: Number(rows), rowGroups: Number(groups) }]),
  );
  return {
    format: "parquet",
    options: named.options,
    files: files.map((file) => ({ ...file, ...about.get(pathOf(file)) })),
    columns: columnsOf(columns),
  };
}

const columnsOf = (rows: readonly EngineRow[]): readonly SourceColumn[] =>
  rows.map(([name, type]) => ({ name: String(name), type: String(type) }));

/** Types and dialect are guessed once, by all files together, and said explicitly from then on. */
async function describeText(
  named: NamedSource,
  described: Described,
  { ask, cuts, splitBytes }: DescribePorts,
  reader: "read_csv" | "read_json",
): Promise<Source> {
  const { files } = described;
  const isJson = reader === "read_json";
  const guessed = isJson || !named.options.every(isOfDialect) ? undefined : await guess(named, described, ask);
  // One look at the only file has told all.
  const types = files.length === 1 && guessed ? guessed.columns : await describedBy(reader, named, described, ask);
  const dialect = guessed?.dialect;
  const said = `columns={${types.map(({ name, type }) => `${quoteName(name)}: ${quoteText(type)}`).join(", ")}}`;
  const rows = isJson
    ? { by: "values" as const }
    : dialect
      ? rowsOf(dialect)
      : isLines(named) && { by: "lines" as const };
  const own = dialect ? optionsOf(dialect) : named.options;
  return {
    format: isJson ? "json" : "csv",
    options: isJson || dialect || own.length === 0 ? [...own, said] : own,
    files: rows ? await withCuts(described, rows, { cuts, splitBytes }) : files,
    columns: types,
  };
}

async function describedBy(
  reader: string,
  { options }: NamedSource,
  described: Described,
  ask: Ask,
): Promise<readonly SourceColumn[]> {
  const read = `${reader}(${[listed(described), ...options].join(", ")})`;
  const [columns = []] = await ask(described.files.map(described.pathOf), [
    { sql: `describe select * from ${read}`, rowsMax: 10_000 },
  ]);
  return columnsOf(columns);
}

/** Files of this node that are large enough for several tasks, and not compressed. */
async function withCuts(
  { files, pathOf }: Described,
  rows: CutWish["rows"],
  { cuts, splitBytes }: Pick<DescribePorts, "cuts" | "splitBytes">,
): Promise<readonly SourceFile[]> {
  return await Promise.all(
    files.map(async (file) => {
      const isWhole = file.bytes < splitBytes * 1.5 || file.object || /\.(gz|zst)$/i.test(file.path);
      return isWhole ? file : { ...file, cuts: await cuts({ path: pathOf(file), everyBytes: splitBytes, rows }) };
    }),
  );
}

type Dialect = Readonly<Record<"delimiter" | "quote" | "escape", string | undefined>> & {
  readonly hasHeader: boolean;
  readonly skip: number;
};

/** Options that a guess of the dialect takes, and then says again. Others of the reader are left as they are. */
const isOfDialect = (option: string): boolean => /^(delim|sep|delimiter|quote|escape|header|skip)=/i.test(option);

const isLines = ({ options }: NamedSource): boolean => isDeepStrictEqual(options, linesOptions);

type Guess = { readonly dialect: Dialect; readonly columns: readonly SourceColumn[] };

/** Of the first file; undefined where that is empty. */
async function guess({ options }: NamedSource, { files, pathOf }: Described, ask: Ask): Promise<Guess | undefined> {
  const [first] = files;
  if (!first || first.bytes === 0) return undefined;
  const path = pathOf(first);
  const sniff = `sniff_csv(${[quoteText(path), ...options].join(", ")})`;
  const [rows = []] = await ask(
    [path],
    [
      {
        sql: `select Delimiter, Quote, Escape, HasHeader, SkipRows, to_json(Columns)::VARCHAR from ${sniff}`,
        rowsMax: 1,
      },
    ],
  );
  const [delimiter, quote, escape, header, skip, columns] = rows[0] ?? [];
  const text = (value: unknown): string | undefined =>
    typeof value === "string" && !/^\(?empty\)?$/i.test(value) ? (value === "\\0" ? "" : value) : undefined;
  const dialect = {
    delimiter: text(delimiter),
    quote: text(quote),
    escape: text(escape),
    hasHeader: header === true,
    skip: Number(skip ?? 0),
  };
  return { dialect, columns: typeof columns === "string" ? (JSON.parse(columns) as SourceColumn[]) : [] };
}

function optionsOf({ delimiter, quote, escape, hasHeader, skip }: Dialect): readonly string[] {
  const said = { delim: delimiter, quote, escape };
  return [
    ...Object.entries(said).flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${quoteText(value)}`])),
    `header=${hasHeader}`,
    `skip=${skip}`,
    "auto_detect=false",
  ];
}

/** Undefined: with another character before quotes the end of a row is not certain. */
function rowsOf({ delimiter = ",", quote = '"', escape, hasHeader, skip }: Dialect): CutWish["rows"] | undefined {
  const isPlain = escape === undefined || escape === "" || escape === quote;
  return isPlain ? { by: "quoted", quote, delimiter, headLines: skip + (hasHeader ? 1 : 0) } : undefined;
}
