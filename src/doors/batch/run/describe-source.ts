/** Looks up what a query's file names stand for: the files, their sizes and their columns, once and for all. */
import { glob, stat } from "node:fs/promises";
import { isAbsolute, resolve } from "node:path";
import { Fault } from "#base/fault.ts";
import { placeOf } from "#doors/batch/memo/identity.ts";
import { quoteName, quoteText } from "#doors/batch/plan/quoting.ts";
import type { NamedSource } from "#doors/batch/plan/query-sources.ts";
import type { Source, SourceColumn, SourceFile } from "#doors/batch/plan/source.ts";
import type { EngineRow, EngineStatement } from "./engine-protocol.ts";

export type Ask = (
  paths: readonly string[],
  statements: readonly EngineStatement[],
) => Promise<readonly (readonly EngineRow[])[]>;

const filesMax = 100_000;

export async function describeSource(named: NamedSource, folder: string, ask: Ask): Promise<Source> {
  const files = await listFiles(named.patterns, folder);
  switch (named.format) {
    case "parquet":
      return await describeParquet(named, files, ask);
    case "csv":
      return await describeText(named, files, ask, "read_csv");
    case "json":
      return await describeText(named, files, ask, "read_json");
  }
}

/** Sorted by name: the order in which DuckDB would read them. */
async function listFiles(patterns: readonly string[], folder: string): Promise<readonly SourceFile[]> {
  const files: SourceFile[] = [];
  for (const pattern of patterns) {
    if (pattern.includes("\0")) throw new Fault("invalid", "find files", { why: "a name has a zero byte" });
    if (/^[a-z][a-z0-9+.-]*:\/\//i.test(pattern))
      throw new Fault("invalid", "find files", { pattern, why: "only files of this node can be read so far" });
    const path = isAbsolute(pattern) ? pattern : resolve(folder, pattern);
    const found = /[*?[\]{}]/.test(pattern) ? await matching(path) : [path];
    if (found.length === 0)
      throw new Fault("not-found", "find files", { pattern, folder, why: "no file has such a name" });
    for (const one of found) files.push(await fileAt(one));
    if (files.length > filesMax) throw new Fault("exhausted", "find files", { pattern, filesMax });
  }
  return files;
}

async function matching(pattern: string): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const path of glob(pattern)) {
    found.push(resolve(path));
    if (found.length > filesMax) throw new Fault("exhausted", "find files", { pattern, filesMax });
  }
  return found.toSorted();
}

async function fileAt(path: string): Promise<SourceFile> {
  const place = await placeOf(path);
  const about = await stat(path).catch((error: unknown) => {
    throw new Fault("not-found", "find files", { path, why: "there is no such file, or it cannot be read" }, error);
  });
  if (!about.isFile()) throw new Fault("invalid", "find files", { path, why: "it is no file" });
  return { path, bytes: about.size, place: place ?? "" };
}

const listed = (files: readonly SourceFile[]): string => `[${files.map(({ path }) => quoteText(path)).join(", ")}]`;

async function describeParquet(named: NamedSource, files: readonly SourceFile[], ask: Ask): Promise<Source> {
  const paths = files.map(({ path }) => path);
  const list = listed(files);
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
    files: files.map((file) => ({ ...file, ...about.get(file.path) })),
    columns: columnsOf(columns),
  };
}

const columnsOf = (rows: readonly EngineRow[]): readonly SourceColumn[] =>
  rows.map(([name, type]) => ({ name: String(name), type: String(type) }));

/** Types and dialect are guessed once, by all files together, and said explicitly from then on. */
async function describeText(
  named: NamedSource,
  files: readonly SourceFile[],
  ask: Ask,
  reader: "read_csv" | "read_json",
): Promise<Source> {
  const paths = files.map(({ path }) => path);
  const arguments_ = [listed(files), ...named.options].join(", ");
  const [columns = []] = await ask(paths, [
    { sql: `describe select * from ${reader}(${arguments_})`, rowsMax: 10_000 },
  ]);
  const types = columnsOf(columns);
  const said = `columns={${types.map(({ name, type }) => `${quoteName(name)}: ${quoteText(type)}`).join(", ")}}`;
  if (reader === "read_json") return { format: "json", options: [...named.options, said], files, columns: types };
  // The reader's own options win; a file of one task is read as all of them were.
  const options = named.options.length > 0 ? named.options : [...(await dialect(files, ask)), said];
  return { format: "csv", options, files, columns: types };
}

async function dialect(files: readonly SourceFile[], ask: Ask): Promise<readonly string[]> {
  const [first] = files;
  if (!first || first.bytes === 0) return [];
  const [rows = []] = await ask(
    [first.path],
    [
      {
        sql: `select Delimiter, Quote, Escape, HasHeader, SkipRows from sniff_csv(${quoteText(first.path)})`,
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
