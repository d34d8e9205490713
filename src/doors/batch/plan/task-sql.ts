/** The statements of one task, once it is known where its inputs lie. Pure: they can be shown as well as run. */
import { carry, uncarry } from "./column-types.ts";
import { partitionSql } from "./partitioner.ts";
import type { StageMap } from "./map-function.ts";
import type { PlanType } from "./plan-json.ts";
import { columnName, indices, quoteName, quoteText } from "./quoting.ts";
import type { Source, Split } from "./source.ts";
import type { Input, Output, Stage } from "./stage.ts";
import { packRange, type Slice, type TaskPart } from "./tasks.ts";

export type TaskPlaces = {
  readonly sources: readonly Source[];
  /** By the stage's id: the types of its columns, and the files of its packs in order. */
  readonly packs: ReadonlyMap<string, { readonly types: readonly PlanType[]; readonly paths: readonly string[] }>;
  /** Where to write. */
  readonly output: string;
  /** Where pieces of text files lie. */
  readonly pieces: string;
  /** How what is written is compressed. */
  readonly form?: "zstd" | undefined;
};

export type TaskSql = {
  /** One behind the other; each makes a view. */
  readonly views: readonly string[];
  /** Writes the output. */
  readonly copy: string;
  /** Run instead of `copy` where the query `unless` says true. */
  readonly other?: { readonly unless: string; readonly copy: string };
  /** Rows of `kind, key, value` about what was written. */
  readonly facts: string;
};

const rowGroupRows = 16_384;
const samples = 64;

export function taskSql(stage: Stage, { branch: index, slice }: TaskPart, places: TaskPlaces): TaskSql {
  const branch = stage.branches[index];
  if (!branch) throw new Error(`the stage ${stage.id} has no branch ${index}`);
  const views = branch.inputs.map((input) => viewSql(input, slice, places));
  const path = quoteText(places.output);
  const columns = stage.types.map((type, i) => `${carry(columnName(i), type)} as ${columnName(i)}`);
  const list = columns.length > 0 ? columns : ["1 as c0"];
  const { output } = stage;
  const copy = (from: string): string => {
    switch (output.kind) {
      case "hash": {
        const partition = `${partitionSql(output.keys, output.partitions)} as p`;
        return copySql(`select ${[...list, partition].join(", ")} from ${from} order by p`, places, rowGroupRows);
      }
      case "sorted":
        return copySql(
          `select ${[...list, `${output.key} as k`].join(", ")} from ${from} order by k`,
          places,
          rowGroupRows,
        );
      default:
        return copySql(`select ${list.join(", ")} from ${from}`, places);
    }
  };
  const { plain } = branch;
  return {
    views,
    copy: copy(branch.sql),
    ...(plain && { other: { unless: plain.unless, copy: copy(plain.sql) } }),
    facts: factsSql(output, path),
  };
}

function factsSql(output: Output, path: string): string {
  switch (output.kind) {
    case "hash":
      return `select 'rows' as kind, p::VARCHAR as key, count(*)::VARCHAR as value from read_parquet(${path}) group by p`;
    case "sorted":
      return (
        `select 'rows' as kind, '' as key, count(*)::VARCHAR as value from read_parquet(${path}) union all ` +
        `select 'cut', n::VARCHAR, hex(k) from (select k, file_row_number as n, count(*) over () as total from ` +
        `read_parquet(${path}, file_row_number=true)) where n > 0 and n % greatest(1, total // ${samples}) = 0`
      );
    default:
      return countSql(path);
  }
}

export type MapSql = {
  readonly views: readonly string[];
  /** What the function gets. */
  readonly batches: string;
  /** From the rows that it wrote to the pack. */
  readonly copy: string;
  readonly facts: string;
};

/** The statements of a task that calls a function. `rows` is the file that the function writes. */
export function mapSql(
  { types, branches }: Stage,
  { function: { schema }, columns }: StageMap,
  { branch: index, slice }: TaskPart,
  places: TaskPlaces & {
    readonly rows: string;
    /** Of one row that the function returns, as JSON; the reader takes several times as much memory. */
    readonly rowBytesMax: number;
  },
): MapSql {
  const branch = branches[index];
  if (!branch) throw new Error(`the stage has no branch ${index}`);
  const given = columns.map(({ type }, i) => (type === "BLOB" ? `to_base64(${columnName(i)})` : columnName(i)));
  const said = schema
    .map(({ name, type }) => `${quoteText(name)}: ${quoteText(type === "BLOB" ? "VARCHAR" : type)}`)
    .join(", ");
  const list = schema.map(({ name, type }, i) => {
    const value = type === "BLOB" ? `from_base64(${quoteName(name)})` : quoteName(name);
    return `${carry(value, types[i] ?? { id: "" })} as ${columnName(i)}`;
  });
  const path = quoteText(places.output);
  const read = `read_json(${quoteText(places.rows)}, format='newline_delimited', maximum_object_size=${places.rowBytesMax}, columns={${said}})`;
  return {
    views: branch.inputs.map((input) => viewSql(input, slice, places)),
    batches: `select ${given.join(", ")} from ${branch.sql}`,
    copy: copySql(`select ${list.join(", ")} from ${read}`, places),
    facts: countSql(path),
  };
}

const countSql = (path: string): string =>
  `select 'rows' as kind, '' as key, count(*)::VARCHAR as value from read_parquet(${path})`;

const copySql = (query: string, { output, form }: Pick<TaskPlaces, "output" | "form">, rowsMax?: number): string => {
  const compression = form === "zstd" ? "zstd, compression_level 1" : "lz4_raw";
  const groups = rowsMax === undefined ? "" : `, row_group_size ${rowsMax}`;
  return `copy (${query}) to ${quoteText(output)} (format parquet, compression ${compression}${groups})`;
};

function viewSql(input: Input, slice: Slice, places: TaskPlaces): string {
  const view = `create view ${input.name} as`;
  if (input.from === "source") {
    const source = places.sources[input.source];
    if (!source) throw new Error(`there is no source ${input.source}`);
    const split =
      input.take === "part" && slice.by === "source" ? slice.split : source.files.map((_, file) => ({ file }));
    return `${view} ${sourceSql(source, split, places.pieces)}`;
  }
  const { types, paths } = places.packs.get(input.stage) ?? { types: [], paths: [] };
  const columns = indices(types.length).map((i) => {
    const name = input.columns?.[i];
    const as = name === undefined ? columnName(i) : quoteName(name);
    return `${uncarry(columnName(i), types[i] ?? { id: "" })} as ${as}`;
  });
  const range = input.take === "part" ? packRange(slice, input.stage) : undefined;
  const taken = range ? paths.slice(range.from, range.to) : paths;
  const where = input.take === "part" ? whereSql(slice) : "";
  return `${view} select ${columns.join(", ") || "1 as c0"} from read_parquet([${taken.map(quoteText).join(", ")}])${where}`;
}

function whereSql(slice: Slice): string {
  if (slice.by === "partition") return ` where p >= ${slice.from} and p < ${slice.to}`;
  if (slice.by !== "range") return "";
  const borders = [
    ...(slice.from === undefined ? [] : [`k >= from_hex(${quoteText(slice.from)})`]),
    ...(slice.to === undefined ? [] : [`k < from_hex(${quoteText(slice.to)})`]),
  ];
  return borders.length === 0 ? "" : ` where ${borders.join(" and ")}`;
}

/** The columns have the types that they had when the query was planned, whatever a single file would suggest. */
export function sourceSql(source: Source, split: Split, pieces = ""): string {
  const { columns, files } = source;
  const list = columns.map(({ name, type }) => `cast(${quoteName(name)} as ${type}) as ${quoteName(name)}`).join(", ");
  const whole = split.filter(({ rows }) => rows === undefined);
  const paths = whole.map(({ file, bytes }) =>
    quoteText(bytes ? piecePath(pieces, file, bytes[0]) : (files[file]?.path ?? "")),
  );
  const selects = [
    ...(paths.length > 0 ? [`select ${list} from ${readSql(source, `[${paths.join(", ")}]`)}`] : []),
    ...split.flatMap(({ file, rows }) =>
      rows === undefined
        ? []
        : [
            `select ${list} from ${readSql(source, quoteText(files[file]?.path ?? ""), ["file_row_number=true"])} ` +
              `where file_row_number >= ${rows[0]} and file_row_number < ${rows[1]}`,
          ],
    ),
  ];
  return selects.length > 0 ? selects.join(" union all ") : `select ${nulls(source)} where false`;
}

/** A piece of a text file, in the folder of a task. */
export const piecePath = (folder: string, file: number, from: number): string => `${folder}/piece-${file}-${from}`;

const nulls = ({ columns }: Source): string =>
  columns.map(({ name, type }) => `cast(NULL as ${type}) as ${quoteName(name)}`).join(", ");

const readers = { parquet: "read_parquet", csv: "read_csv", json: "read_json" } as const;

const readSql = ({ format, options }: Source, paths: string, more: readonly string[] = []): string =>
  `${readers[format]}(${[paths, ...options, ...more].join(", ")})`;
