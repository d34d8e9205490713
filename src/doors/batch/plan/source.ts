/** What a query reads: files that were listed when the job began, and are not looked for again. */
import { digestOf } from "./stage.ts";

export type SourceFile = {
  readonly path: string;
  readonly bytes: number;
  /** What it is recognised by: its place on disk, size and times. */
  readonly place: string;
  /** In a bucket: under which grant, and which version of it. */
  readonly object?: { readonly grant: string; readonly key: string; readonly etag: string };
  /** Of Parquet only. */
  readonly rows?: number;
  readonly rowGroups?: number;
  /** Of text only: the bytes before its first row, and offsets at which rows begin, about a task's worth apart. */
  readonly cuts?: { readonly head: number; readonly at: readonly number[] };
};

export type SourceColumn = { readonly name: string; readonly type: string };

export type Source = {
  readonly format: "parquet" | "csv" | "json";
  readonly files: readonly SourceFile[];
  readonly columns: readonly SourceColumn[];
  /** More arguments of the function that reads it, as SQL, such as `delim=','`. */
  readonly options: readonly string[];
};

/** The planner's tables are called after the place of their source in the list. */
export const sourceTable = (index: number): string => `s${index}`;

export const sourceBytes = ({ files }: Source): number => files.reduce((sum, { bytes }) => sum + bytes, 0);

export const sourceId = (source: Source): string => digestOf(source);

type Range = readonly [from: number, to: number];

/** One piece of a source, for one task: whole files, some rows of one, or some bytes of a text. */
export type Split = readonly { readonly file: number; readonly rows?: Range; readonly bytes?: Range }[];

/** Cuts large Parquet files at row groups and text between rows, and puts small files together. */
export function splitsOf({ format, files }: Source, splitBytes: number): readonly Split[] {
  const splits: Split[] = [];
  let small: { readonly file: number }[] = [];
  let smallBytes = 0;
  const flush = (): void => {
    if (small.length > 0) splits.push(small);
    small = [];
    smallBytes = 0;
  };
  for (const [file, { bytes, rows = 0, rowGroups = 1, cuts: ends }] of files.entries()) {
    if (ends && ends.at.length > 0) {
      flush();
      const borders = [0, ...ends.at, bytes];
      for (const [i, to] of borders.slice(1).entries()) splits.push([{ file, bytes: [borders[i] ?? 0, to] }]);
      continue;
    }
    const pieces = format === "parquet" ? Math.min(rowGroups, Math.round(bytes / splitBytes)) : 1;
    if (pieces > 1) {
      flush();
      const perGroup = Math.ceil(rows / rowGroups);
      const cuts = Array.from({ length: pieces + 1 }, (_, i) =>
        Math.min(rows, Math.round((rowGroups * i) / pieces) * perGroup),
      );
      for (let i = 0; i < pieces; i += 1) splits.push([{ file, rows: [cuts[i] ?? 0, cuts[i + 1] ?? rows] }]);
      continue;
    }
    if (smallBytes > 0 && smallBytes + bytes > splitBytes * 1.5) flush();
    small.push({ file });
    smallBytes += bytes;
  }
  flush();
  return splits.length === 0 ? [[]] : splits;
}
