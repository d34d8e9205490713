/** The history's tables as data; each SQL store derives its schema, upserts and queries from here. */
import type { HistoryRows } from "#base/history-rows.ts";

/** `id` = a whole number, part of keys; `number` = any other number; `list` = strings, kept as JSON. */
export type ColumnKind = "id" | "number" | "text" | "list";
export type Column = { readonly name: string; readonly field: string; readonly kind: ColumnKind };
export type TableName = Exclude<keyof HistoryRows, "submissions">;
export type TableSpec = { readonly columns: readonly Column[]; readonly key: readonly string[] };

/**
 * Keys begin with the shard and the job or task, by which the page of a job looks rows up. So they are the only indices
 * that the tables need; the list of jobs has one more.
 */
export const historyTables: Readonly<Record<TableName, TableSpec>> = {
  jobs: table(
    ["shard", "job"],
    "shard job | priority submittedAtMs endedAtMs seenAtMs number | tenant door name phase reason series | tags",
  ),
  stages: table(
    ["shard", "job", "stage"],
    "shard job stage | generation tasks startedAtMs endedAtMs | name phase reason",
  ),
  tasks: table(
    ["shard", "job", "task"],
    "shard job task stage | generation attempts queuedAtMs endedAtMs | key phase result reason | digests",
  ),
  attempts: table(
    ["shard", "job", "task", "token"],
    "shard job task token | grantedAtMs startedAtMs endedAtMs | executor outcome reason",
  ),
  steps: table(["shard", "task", "token", "step"], "shard task token step | atMs | name status"),
};

export type StoredName = TableName | "pages" | "tags" | "submissions";

/** The tables as they are stored (history/fold.ts). */
export const storedTables: Readonly<Record<StoredName, TableSpec>> = {
  ...historyTables,
  jobs: {
    ...historyTables.jobs,
    columns: [...historyTables.jobs.columns, { name: "whole", field: "whole", kind: "text" }],
  },
  pages: table(["shard", "job", "seq", "part"], "shard job seq part | | cells"),
  submissions: table(["shard", "job"], "shard job | | request"),
  /** In the order in which a tenant's jobs with a tag are listed. */
  tags: table(
    ["tenant", "name", "value", "submitted_at_ms", "shard", "job"],
    "shard job | submittedAtMs | tenant name value",
  ),
};

export const storedNames = Object.keys(storedTables) as readonly StoredName[];

/** How rows of a table are ordered on a job's page. */
export const byKey = ({ key }: TableSpec): string => key.map((name) => `"${name}"`).join(", ");

export function cellOf(row: object, { field, kind }: Column): string | number {
  const value = (row as Readonly<Record<string, string | number | readonly string[]>>)[field];
  if (kind === "list") return (value as readonly string[]).length === 0 ? "" : JSON.stringify(value);
  return value as string | number;
}

export function rowOf<T>({ columns }: TableSpec, cells: Readonly<Record<string, unknown>>): T {
  const pairs = columns.map(({ name, field, kind }) => [field, kind === "list" ? listOf(cells[name]) : cells[name]]);
  return Object.fromEntries(pairs) as T;
}

export const listOf = (cell: unknown): readonly string[] => (cell === "" ? [] : (JSON.parse(String(cell)) as string[]));

function table(key: readonly string[], fields: string): TableSpec {
  const kinds: readonly ColumnKind[] = ["id", "number", "text", "list"];
  const columns = fields.split("|").flatMap((part, i) =>
    part
      .trim()
      .split(" ")
      .filter((field) => field !== "")
      .map((field) => ({
        field,
        kind: kinds[i] ?? "text",
        name: field.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`),
      })),
  );
  return { key, columns };
}
