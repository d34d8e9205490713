/** Operators without anything below them. */
import { expressionSql, filterSql } from "#doors/batch/plan/expressions.ts";
import { literal } from "#doors/batch/plan/literals.ts";
import { typeSql } from "#doors/batch/plan/column-types.ts";
import { mapped, oneBranch, type Fragment } from "./fragment.ts";
import type { PlanNode, PlanType } from "#doors/batch/plan/plan-json.ts";
import { columnName, quoteName } from "#doors/batch/plan/quoting.ts";
import { sourceBytes, sourceTable, type Source } from "#doors/batch/plan/source.ts";
import type { Cut, Cutter } from "./cutter.ts";
import type { Input, Parts } from "#doors/batch/plan/stage.ts";
import { Unsplittable } from "#doors/batch/plan/unsplittable.ts";

export function scanFragment(node: PlanNode, cutter: Cutter): Cut {
  const { columns, where } = scannedOf(node);
  const list = columns.map(({ sql }, i) => `${sql} as ${columnName(i)}`).join(", ") || "1 as c0";
  const types = columns.map(({ type }) => type);
  const map = /^m(\d+)$/.exec(node.name === "seq_scan" ? (node.function_data?.table ?? "") : "")?.[1];
  const share = Math.min(1, columns.length / Math.max(1, node.names?.length ?? 0)) / (where === "" ? 1 : 3);
  if (map !== undefined) {
    const rows = cutter.mapped(Number(map));
    if (!rows) return undefined;
    const named = (node.names ?? []).map((name, i) => `${columnName(i)} as ${quoteName(name)}`).join(", ");
    const { spread } = rows;
    return mapped(rows, (from) => `select ${list} from (select ${named} from ${from})${where}`, {
      types,
      spread: spread.kind === "one" ? spread : { kind: "any" },
      bytes: rows.bytes * share,
    });
  }
  const { sources, settings } = cutter;
  const index = sourceOf(node, sources);
  const source = sources[index];
  if (!source) throw new Unsplittable("a scan of what is no source");
  const bytes = sourceBytes(source);
  const isLarge = bytes > settings.broadcastBytes || bytes > settings.splitBytes;
  const take = isLarge ? "part" : "all";
  const name = `${sourceTable(index)}_${take}`;
  const input: Input = { name, from: "source", source: index, take };
  const parts: Parts = isLarge ? { by: "source", source: index } : { by: "one" };
  return {
    branches: [oneBranch(`(select ${list} from ${name}${where})`, [input], parts)],
    types,
    spread: isLarge ? { kind: "any" } : { kind: "one" },
    bytes: bytes * share,
  };
}

function scannedOf(node: PlanNode) {
  const { names = [], returned_types: all = [] } = node;
  const ids = (node.column_indexes ?? []).map(({ index: id = 0, index_type: kind, child_indexes: children }) => {
    if ((kind !== undefined && kind !== "FULL_READ") || (children ?? []).length > 0)
      throw new Unsplittable("a scan of a part of a struct");
    return Number(id);
  });
  const taken = (node.projection_ids ?? ids.map((_, i) => i)).map((place) => ids[place] ?? -1);
  const columns = taken.map((id) => columnOf(id, names, all));
  const filters = (node.table_filters?.filters ?? []).map(({ key = 0, value }) =>
    filterSql(value, quoteName(names[key] ?? noColumn(key))),
  );
  return { columns, where: filters.length > 0 ? ` where ${filters.join(" and ")}` : "" };
}

function columnOf(id: number, names: readonly string[], types: readonly PlanType[]) {
  const [name, type] = [names[id], types[id]];
  if (name !== undefined && type) return { sql: quoteName(name), type };
  // Only how many rows there are matters.
  if (id >= 2 ** 63) return { sql: "cast(1 as INTEGER)", type: { id: "INTEGER" } };
  return noColumn(id);
}

function noColumn(id: number): never {
  throw new Unsplittable(`a scan of a column that its source does not have (${id})`);
}

function sourceOf({ name, function_data: data, parameters }: PlanNode, sources: readonly Source[]): number {
  if (name === "seq_scan" && /^s\d+$/.test(data?.table ?? "")) return Number((data?.table ?? "").slice(1));
  if (name !== "read_parquet" && name !== "parquet_scan") throw new Unsplittable(`the table function ${name}`);
  void parameters;
  const files = data?.files ?? [];
  return sources.findIndex(
    (one) =>
      one.format === "parquet" &&
      one.files.length === files.length &&
      one.files.every(({ path }, i) => path === files[i]),
  );
}

export function emptyFragment({ return_types: types = [] }: PlanNode): Fragment {
  const columns = types.map((type, i) => `cast(NULL as ${typeSql(type)}) as ${columnName(i)}`);
  const sql = `(select ${columns.join(", ") || "1 as c0"} where false)`;
  return { branches: [oneBranch(sql)], types, spread: { kind: "one" }, bytes: 0 };
}

/** VALUES with expressions. */
export function valuesFragment(node: PlanNode): Fragment {
  const rows = (node.expressions ?? []) as unknown as readonly Parameters<typeof expressionSql>[0][][];
  const types = node.expr_types ?? [];
  if (node.children?.[0]?.type !== "LOGICAL_DUMMY_SCAN") throw new Unsplittable("values that depend on other rows");
  return listed(
    rows.map((row) => row.map((one) => expressionSql(one))),
    types,
  );
}

/** Rows that the optimiser has worked out, such as a long list after IN. */
export function rowsFragment({ collection, chunk_types: chunkTypes }: PlanNode): Fragment {
  const columns = collection?.values ?? [];
  const types = collection?.types ?? chunkTypes ?? columns.map(([first]) => first?.type ?? { id: "INTEGER" });
  const rows = (columns[0] ?? []).map((_, row) =>
    columns.map((column) => {
      const value = column[row];
      if (!value) throw new Unsplittable("rows of different lengths");
      return literal(value);
    }),
  );
  return listed(rows, types);
}

function listed(rows: readonly (readonly string[])[], types: readonly PlanType[]): Fragment {
  if (rows.length === 0) return emptyFragment({ type: "LOGICAL_EMPTY_RESULT", return_types: types });
  const names = types.map((_, i) => columnName(i)).join(", ");
  const casts = types.map((type, i) => `cast(${columnName(i)} as ${typeSql(type)}) as ${columnName(i)}`).join(", ");
  const sql = `(select ${casts} from (values ${rows.map((row) => `(${row.join(", ")})`).join(", ")}) t(${names}))`;
  return { branches: [oneBranch(sql)], types, spread: { kind: "one" }, bytes: rows.length * 20 };
}
