/** What files of a source hold: their sizes and columns, once and for all. */
import { Fault } from "#base/fault.ts";
import { filesMax } from "#doors/batch/grants/node-files.ts";
import { quoteName, quoteText } from "#doors/batch/plan/quoting.ts";
import type { NamedSource } from "#doors/batch/plan/query-sources.ts";
import type { Source, SourceColumn, SourceFile } from "#doors/batch/plan/source.ts";
import type { EngineRow, EngineStatement } from "./engine-protocol.ts";

export type Ask = (
  paths: readonly string[],
  statements: readonly EngineStatement[],
) => Promise<readonly (readonly EngineRow[])[]>;

/** `pathOf` says where the engine finds a file that has been found. */
export type Described = { readonly files: readonly SourceFile[]; readonly pathOf: (file: SourceFile) => string };

export async function describeSource(named: NamedSource, files: Described, ask: Ask): Promise<Source> {
  switch (named.format) {
    case "parquet":
      return await describeParquet(named, files, ask);
    case "csv":
      return await describeText(named, files, ask, "read_csv");
    case "json":
      return await describeText(named, files, ask, "read_json");
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
  ask: Ask,
  reader: "read_csv" | "read_json",
): Promise<Source> {
  const { files, pathOf } = described;
  const paths = files.map(pathOf);
  const arguments_ = [listed(described), ...named.options].join(", ");
  const [columns = []] = await ask(paths, [
    { sql: `describe select * from ${reader}(${arguments_})`, rowsMax: 10_000 },
  ]);
  const types = columnsOf(columns);
  const said = `columns={${types.map(({ name, type }) => `${quoteName(name)}: ${quoteText(type)}`).join(", ")}}`;
  if (reader === "read_json") return { format: "json", options: [...named.options, said], files, columns: types };
  // The reader's own options win; a file of one task is read as all of them were.
  const options = named.options.length > 0 ? named.options : [...(await dialect(described, ask)), said];
  return { format: "csv", options, files, columns: types };
}

async function dialect({ files, pathOf }: Described, ask: Ask): Promise<readonly string[]> {
  const [first] = files;
  if (!first || first.bytes === 0) return [];
  const path = pathOf(first);
  const [rows = []] = await ask(
    [path],
    [
      {
        sql: `select Delimiter, Quote, Escape, HasHeader, SkipRows from sniff_csv(${quoteText(path)})`,
        rowsMax: 1,
      },
    ],
  );
  const [delimiter, quote, escape, header, skip] = rows[0] ?? [];
  const text = (name: string, value: unknown): readonly string[] =>
    typeof value === "string" && !/^\(?empty\)?$/i.test(value)
      ? [`${name}=${quoteText(value === "\\0" ? "" : value)}`]
      : [];
  return [
    ...text("delim", delimiter),
    ...text("quote", quote),
    ...text("escape", escape),
    `header=${header === true ? "true" : "false"}`,
    `skip=${Number(skip ?? 0)}`,
    "auto_detect=false",
  ];
}
