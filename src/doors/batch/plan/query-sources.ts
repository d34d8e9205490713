/**
 * Finds the files that a query names, in the syntax tree that DuckDB makes of it, and puts the names of tables in their
 * place: which files those are is decided once, when the job begins.
 */
import { Fault } from "#base/fault.ts";
import { mapTable } from "./map-function.ts";
import { sourceTable, type Source } from "./source.ts";

/** Files as the query names them; patterns are not looked up yet. */
export type NamedSource = Pick<Source, "format"> & {
  readonly patterns: readonly string[];
  /** Arguments such as `delim=','`, as SQL. */
  readonly options: readonly string[];
};

export type FoundSources = {
  readonly sources: readonly NamedSource[];
  /** The syntax tree with tables s0, s1, ... for them, as JSON. */
  readonly rewritten: string;
  /** Which functions' results it reads. */
  readonly maps: readonly number[];
};

type Tree = Record<string, unknown>;

const formats: Readonly<Record<string, Source["format"]>> = {
  read_parquet: "parquet",
  parquet_scan: "parquet",
  read_csv: "csv",
  read_csv_auto: "csv",
  read_json: "json",
  read_json_auto: "json",
  read_ndjson: "json",
  read_ndjson_auto: "json",
  // Not DuckDB's: lines of text as rows of one column.
  read_lines: "csv",
};

/** A delimiter that no text has, and no quotes. */
export const linesOptions: readonly string[] = [
  "columns={'line': 'VARCHAR'}",
  "delim='\u0001'",
  "quote=''",
  "escape=''",
  "header=false",
  "auto_detect=false",
  "strict_mode=false",
];

const sourcesMax = 1_000;

/** `known` are those of queries before this one, which share their numbers; `maps` are names of functions. */
export function findSources(
  tree: string,
  known: readonly NamedSource[] = [],
  maps: readonly string[] = [],
): FoundSources {
  const root = parseExact(tree) as { error?: boolean; error_message?: string; statements?: unknown[] };
  if (root.error) throw new Fault("invalid", "read query", { why: root.error_message ?? "it is no SQL" });
  if (root.statements?.length !== 1)
    throw new Fault("invalid", "read query", { statements: root.statements?.length ?? 0, why: "give one SELECT" });
  const sources: NamedSource[] = [...known];
  const used = new Set<number>();
  const indexOf = (source: NamedSource): number => {
    const text = JSON.stringify(source);
    const known = sources.findIndex((one) => JSON.stringify(one) === text);
    if (known >= 0) return known;
    if (sources.length >= sourcesMax) throw new Fault("invalid", "read query", { sourcesMax, why: "too many sources" });
    return sources.push(source) - 1;
  };
  const seen = walk(root, (node) => {
    const map = mapIn(node, maps);
    if (map !== undefined) {
      used.add(map);
      const alias = typeof node["alias"] === "string" && node["alias"] !== "" ? node["alias"] : maps[map];
      return { ...node, alias, table_name: mapTable(map) };
    }
    const named = namedIn(node);
    if (!named) return undefined;
    const { alias, ...source } = named;
    return {
      type: "BASE_TABLE",
      alias,
      sample: node["sample"] ?? null,
      query_location: node["query_location"] ?? 0,
      schema_name: "",
      table_name: sourceTable(indexOf(source)),
      column_name_alias: node["column_name_alias"] ?? [],
      catalog_name: "",
      at_clause: null,
    };
  });
  return { sources, rewritten: writeExact(seen), maps: [...used].toSorted((a, b) => a - b) };
}

function mapIn({ type, table_name: table, schema_name: schema }: Tree, maps: readonly string[]): number | undefined {
  if (type !== "BASE_TABLE" || typeof table !== "string" || (schema !== undefined && schema !== "")) return undefined;
  const at = maps.indexOf(table);
  return at < 0 ? undefined : at;
}

function namedIn(node: Tree): (NamedSource & { readonly alias: string }) | undefined {
  const { type, table_name: table, schema_name: schema, function: call } = node;
  const alias = typeof node["alias"] === "string" && node["alias"] !== "" ? node["alias"] : undefined;
  if (type === "BASE_TABLE" && typeof table === "string" && (schema === undefined || schema === "")) {
    const format = formatOf(table);
    return format && { format, patterns: [table], options: [], alias: alias ?? stemOf(table) };
  }
  if (type !== "TABLE_FUNCTION" || typeof call !== "object" || call === null) return undefined;
  const { function_name: name, children } = call as { function_name?: unknown; children?: Tree[] };
  const format = typeof name === "string" ? formats[name] : undefined;
  if (!format || typeof name !== "string") return undefined;
  const [first, ...others] = children ?? [];
  if (name === "read_lines" && others.length > 0)
    throw new Fault("invalid", "read query", { why: "read_lines takes names of files and no options" });
  const fixed =
    name === "read_lines" ? linesOptions : name.startsWith("read_ndjson") ? ["format='newline_delimited'"] : [];
  return {
    format,
    patterns: textsOf(first),
    options: [...others.map(optionOf), ...fixed],
    alias: alias ?? name,
  };
}

/** What DuckDB itself would take for a file. */
function formatOf(table: string): Source["format"] | undefined {
  const plain = table.toLowerCase().replace(/\.(gz|zst)$/, "");
  if (/\.(parquet|parq)$/.test(plain)) return "parquet";
  if (/\.(csv|tsv)$/.test(plain)) return "csv";
  return /\.(json|jsonl|ndjson)$/.test(plain) ? "json" : undefined;
}

const stemOf = (path: string): string => (path.split(/[\\/]/).at(-1) ?? path).replace(/\..*$/, "") || path;

function constantOf(node: Tree | undefined): unknown {
  if (node?.["class"] === "CAST") return constantOf(node["child"] as Tree);
  const value = node?.["value"] as { value?: unknown; is_null?: boolean } | undefined;
  return node?.["class"] === "CONSTANT" ? value?.value : undefined;
}

function textsOf(node: Tree | undefined): readonly string[] {
  const list =
    node?.["function_name"] === "list_value"
      ? ((node["children"] ?? []) as Tree[]).map(constantOf)
      : [constantOf(node)];
  if (list.length === 0 || !list.every((one) => typeof one === "string"))
    throw new Fault("invalid", "read query", { why: "name files by texts, such as 'data/*.parquet'" });
  return list;
}

/** Only plain values: nothing of them may look at files. */
function optionOf(node: Tree): string {
  const name = ((node["left"] as Tree | undefined)?.["column_names"] as string[] | undefined)?.[0];
  const value = constantOf(node["right"] as Tree | undefined);
  const isBoolean = ((node["right"] as Tree | undefined)?.["cast_type"] as Tree | undefined)?.["id"] === "BOOLEAN";
  if (node["type"] !== "COMPARE_EQUAL" || name === undefined || !/^[a-z_]{1,50}$/i.test(name) || value === undefined)
    throw new Fault("invalid", "read query", { why: "an option of a file is written like header=true or delim=';'" });
  if (isBoolean) return `${name}=${value === "t" || value === "true" ? "true" : "false"}`;
  if (typeof value === "string") return `${name}='${value.replaceAll("'", "''")}'`;
  return `${name}=${writeExact(value)}`;
}

const depthMax = 2_000;

/** A copy, with what `change` answers instead of the node it was asked about. */
function walk(value: unknown, change: (node: Tree) => Tree | undefined, depth = 0): unknown {
  if (depth > depthMax) throw new Fault("invalid", "read query", { why: "it is nested too deeply" });
  if (Array.isArray(value)) return value.map((one) => walk(one, change, depth + 1));
  if (typeof value !== "object" || value === null || exactNumber in value) return value;
  const node = value as Tree;
  const changed = change(node);
  if (changed) return changed;
  return Object.fromEntries(Object.entries(node).map(([key, one]) => [key, walk(one, change, depth + 1)]));
}

type RawJson = { rawJSON(text: string): unknown };

/** Numbers as they are written: a query may have more digits than a double. */
const parseExact = (text: string): unknown =>
  JSON.parse(text, (_key, value: unknown, context?: { readonly source?: string }) =>
    typeof value === "number" && context?.source !== undefined && String(value) !== context.source
      ? { [exactNumber]: context.source }
      : value,
  );

const exactNumber = Symbol("a number as it was written");

const writeExact = (value: unknown): string =>
  JSON.stringify(value, (_key, one: unknown) =>
    typeof one === "object" && one !== null && exactNumber in one
      ? (JSON as unknown as RawJson).rawJSON(String(one[exactNumber]))
      : one,
  );
