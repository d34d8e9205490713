/** Window functions: all rows of a window's partition come into one task. */
import { expressionSql, orderSql, typeOf } from "#doors/batch/plan/expressions.ts";
import { isOne, mapped, unsplit } from "./fragment.ts";
import type { PlanExpression, PlanNode } from "#doors/batch/plan/plan-json.ts";
import { columnName, columnNames, quoteName } from "#doors/batch/plan/quoting.ts";
import { keysOf, type Cut, type Cutter } from "./cutter.ts";
import { knownAggregates } from "./aggregate.ts";
import { Unsplittable } from "#doors/batch/plan/unsplittable.ts";

export function windowFragment(node: PlanNode, cutter: Cutter): Cut {
  const below = cutter.only(node);
  if (!below) return undefined;
  const list = node.expressions ?? [];
  const [first, ...others] = list.map((one) => one.partitions ?? []);
  const texts = others.map((keys) => new Set(keys.map((key) => expressionSql(key))));
  const common = (first ?? []).filter((key) => texts.every((keys) => keys.has(expressionSql(key))));
  const here = (() => {
    if (isOne(below)) return below;
    const { spread } = below;
    const keys = keysOf(common);
    const isThere = spread.kind === "hash" && spread.keys.every((key) => keys.some(({ sql }) => sql === key));
    if (isThere && keys.length > 0) return unsplit(below);
    return keys.length > 0
      ? cutter.grouped(below, keys, "window partitions")
      : cutter.gather(below, "windows over all rows");
  })();
  if (!here) return undefined;
  const count = below.types.length;
  const windows = list.map((one, i) => `${windowSql(one)} as ${columnName(count + i)}`);
  const names = count === 0 ? [] : [columnNames(count)];
  return mapped(here, (from) => `select ${[...names, ...windows].join(", ")} from ${from}`, {
    types: [...below.types, ...list.map(typeOf)],
    bytes: below.bytes * 1.2,
  });
}

const functions: Readonly<Record<string, string>> = {
  WINDOW_ROW_NUMBER: "row_number",
  WINDOW_RANK: "rank",
  WINDOW_RANK_DENSE: "dense_rank",
  WINDOW_DENSE_RANK: "dense_rank",
  WINDOW_NTILE: "ntile",
  WINDOW_PERCENT_RANK: "percent_rank",
  WINDOW_CUME_DIST: "cume_dist",
  WINDOW_LEAD: "lead",
  WINDOW_LAG: "lag",
  WINDOW_FIRST_VALUE: "first_value",
  WINDOW_LAST_VALUE: "last_value",
  WINDOW_NTH_VALUE: "nth_value",
};

function windowSql(e: PlanExpression): string {
  const name = e.type === "WINDOW_AGGREGATE" ? e.name : functions[e.type];
  if (e.expression_class !== "BOUND_WINDOW" || name === undefined) throw new Unsplittable(`the window ${e.type}`);
  if (e.type === "WINDOW_AGGREGATE" && !knownAggregates.has(name)) throw new Unsplittable(`the window ${name}`);
  if (e.original_arguments && e.original_arguments.length !== (e.children ?? []).length)
    throw new Unsplittable(`the window ${name} with constants`);
  if ((e.arg_orders ?? []).length > 0) throw new Unsplittable("an order within a window's arguments");
  const given = [...(e.children ?? []), ...[e.offset_expr, e.default_expr].flatMap((one) => one ?? [])];
  const args = given.map((one) => expressionSql(one)).join(", ");
  const call =
    name === "count_star"
      ? "count(*)"
      : `${quoteName(name)}(${e.distinct ? "distinct " : ""}${args}${e.ignore_nulls ? " ignore nulls" : ""})`;
  const filter = e.filter_expr ? ` filter (where ${expressionSql(e.filter_expr)})` : "";
  const parts = [
    (e.partitions ?? []).length > 0
      ? `partition by ${(e.partitions ?? []).map((one) => expressionSql(one)).join(", ")}`
      : "",
    (e.orders ?? []).length > 0 ? `order by ${orderSql(e.orders ?? [])}` : "",
    frameSql(e),
  ];
  return `${call}${filter} over (${parts.filter((one) => one !== "").join(" ")})`;
}

/** Functions without a frame ignore it. */
function frameSql(e: PlanExpression): string {
  const hasFrame = ["WINDOW_AGGREGATE", "WINDOW_FIRST_VALUE", "WINDOW_LAST_VALUE", "WINDOW_NTH_VALUE"].includes(e.type);
  if (!hasFrame) return "";
  const start = boundSql(e.start, e.start_expr, e.orders);
  const end = boundSql(e.end, e.end_expr, e.orders);
  const unit = [start.unit, end.unit].find((one) => one !== "") ?? "range";
  return `${unit} between ${start.sql} and ${end.sql}${excludeSql(e.exclude_clause)}`;
}

function boundSql(
  bound = "",
  offset: PlanExpression | undefined,
  orders: PlanExpression["orders"],
): { readonly sql: string; readonly unit: string } {
  if (bound === "UNBOUNDED_PRECEDING") return { sql: "unbounded preceding", unit: "" };
  if (bound === "UNBOUNDED_FOLLOWING") return { sql: "unbounded following", unit: "" };
  const [, kind, unit] = /^(CURRENT_ROW|EXPR_PRECEDING|EXPR_FOLLOWING)_(ROWS|RANGE|GROUPS)$/.exec(bound) ?? [];
  if (kind === undefined || unit === undefined) throw new Unsplittable(`the window frame ${bound}`);
  if (kind === "CURRENT_ROW") return { sql: "current row", unit: unit.toLowerCase() };
  if (!offset) throw new Unsplittable("a window frame without its offset");
  const side = kind === "EXPR_PRECEDING" ? "preceding" : "following";
  const distance = unit === "RANGE" ? rangeOffset(offset, orders) : offset;
  return { sql: `${expressionSql(distance)} ${side}`, unit: unit.toLowerCase() };
}

/** In place of the offset of a range, a plan has the order's value plus or minus the offset. */
function rangeOffset(
  { name = "", children = [] }: PlanExpression,
  orders: PlanExpression["orders"] = [],
): PlanExpression {
  const [value, offset] = children;
  const [order, ...others] = orders;
  const isOrder = (one: PlanExpression | undefined): boolean =>
    one !== undefined && order !== undefined && expressionSql(one) === expressionSql(order.expression);
  const isIt = isOrder(value) || (value?.expression_class === "BOUND_CAST" && isOrder(value.child));
  if (!/^[+-]$/.test(name) || !offset || children.length > 2 || others.length > 0 || !isIt)
    throw new Unsplittable("a window frame over a range of such values");
  return offset;
}

function excludeSql(clause: string | undefined): string {
  switch (clause) {
    case undefined:
    case "NO_OTHER":
      return "";
    case "CURRENT_ROW":
      return " exclude current row";
    case "GROUP":
      return " exclude group";
    case "TIES":
      return " exclude ties";
    default:
      throw new Unsplittable(`the window exclusion ${clause}`);
  }
}
