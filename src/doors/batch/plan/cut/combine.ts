/** Aggregates as calls, and as two halves: groups of the rows of one task, and how such groups are put together. */
import { typeSql } from "#doors/batch/plan/column-types.ts";
import { expressionSql, orderSql, typeOf } from "#doors/batch/plan/expressions.ts";
import { literal } from "#doors/batch/plan/literals.ts";
import type { PlanExpression, PlanType, PlanValue } from "#doors/batch/plan/plan-json.ts";
import { columnName, quoteName, quoteText } from "#doors/batch/plan/quoting.ts";
import { mapped, orPlain, type Fragment } from "./fragment.ts";

export type Groups = {
  readonly list: readonly PlanExpression[];
  readonly aggregates: readonly PlanExpression[];
  readonly types: readonly PlanType[];
};

/** Arguments that DuckDB has taken out of the list. */
export function constantsOf({ name, function_data: data, return_type: type }: PlanExpression): readonly string[] {
  const { separator, quantiles, desc } = (data ?? {}) as {
    readonly separator?: unknown;
    readonly quantiles?: readonly PlanValue[];
    readonly desc?: boolean;
  };
  if (name === "string_agg" && typeof separator === "string") return [quoteText(separator)];
  const [only, ...others] = quantiles ?? [];
  const isQuantile = (name === "quantile_cont" || name === "quantile_disc") && type?.id !== "LIST" && !desc;
  return isQuantile && only && others.length === 0 ? [literal(only)] : [];
}

const argumentsOf = (e: PlanExpression): string =>
  [...(e.children ?? []).map((one) => expressionSql(one)), ...constantsOf(e)].join(", ");
const filtersOf = ({ filter }: PlanExpression): readonly string[] => (filter ? [expressionSql(filter)] : []);
const filterOf = ({ filter }: PlanExpression): string => (filter ? ` filter (where ${expressionSql(filter)})` : "");

export function callOf(e: PlanExpression): string {
  if (e.name === "count_star") return `count(*)${filterOf(e)}`;
  const distinct = e.aggregate_type === "DISTINCT" ? "distinct " : "";
  const orders = e.order_bys?.orders ?? [];
  const order = orders.length > 0 ? ` order by ${orderSql(orders)}` : "";
  return `${quoteName(e.name ?? "")}(${distinct}${argumentsOf(e)}${order})${filterOf(e)}`;
}

const combinable: ReadonlySet<string> = new Set([
  "avg",
  "bit_and",
  "bit_or",
  "bit_xor",
  "bool_and",
  "bool_or",
  "count",
  "count_star",
  "max",
  "min",
  "sum",
  "sum_no_overflow",
]);

export function canCombine(e: PlanExpression): boolean {
  const { name = "", aggregate_type: kind, order_bys: order, children = [] } = e;
  if (!combinable.has(name) || kind === "DISTINCT" || (order?.orders ?? []).length > 0) return false;
  // max(x, 3) and such give lists.
  if ((name === "max" || name === "min") && children.length !== 1) return false;
  return name !== "avg" || averageSum(children) !== undefined;
}

/** The type in which a sum of what is averaged is exact. */
function averageSum([child]: readonly PlanExpression[]): string | undefined {
  const { id, type_info: info } = child ? typeOf(child) : { id: "", type_info: undefined };
  if (id === "DOUBLE" || id === "FLOAT") return "DOUBLE";
  if (id === "DECIMAL") return `DECIMAL(38,${info?.scale ?? 0})`;
  return /^U?(TINY|SMALL|BIG)?INT(EGER)?$/.test(id) ? "DECIMAL(38,0)" : undefined;
}

type Partial = {
  readonly sql: string;
  /** The same of a single row. */
  readonly plain: string;
  readonly type: PlanType;
};

type Halves = { readonly partial: readonly Partial[]; readonly final: string };

/** The partial columns begin at column `at`. */
function halvesOf(e: PlanExpression, at: number): Halves {
  const { name = "", children = [] } = e;
  const type = typeOf(e);
  const column = columnName(at);
  const call = callOf(e);
  const [value] = children.map((one) => expressionSql(one));
  const isCounted = [value === undefined ? "true" : `${value} is not null`, ...filtersOf(e)].join(" and ");
  const one = `cast(case when ${isCounted} then 1 else 0 end as BIGINT)`;
  const plain = (as: string): string =>
    `cast(${filtersOf(e).length > 0 ? `case when ${filtersOf(e).join(" and ")} then ${value} end` : value} as ${as})`;
  if (name === "count" || name === "count_star") {
    const counted = { sql: call, plain: one, type: { id: "BIGINT" } };
    return { partial: [counted], final: `cast(coalesce(sum(${column}), 0) as BIGINT)` };
  }
  if (name === "avg") {
    const sum = averageSum(children) ?? "DOUBLE";
    const sumType: PlanType = sum === "DOUBLE" ? { id: "DOUBLE" } : decimalType(sum);
    const args = argumentsOf(e);
    return {
      partial: [
        { sql: `cast(sum(${args})${filterOf(e)} as ${sum})`, plain: plain(sum), type: sumType },
        { sql: `count(${args})${filterOf(e)}`, plain: one, type: { id: "BIGINT" } },
      ],
      final: `cast(cast(sum(${column}) as DOUBLE) / sum(${columnName(at + 1)}) as ${typeSql(type)})`,
    };
  }
  const again = name === "sum_no_overflow" ? "sum" : name;
  const partial = [{ sql: call, plain: plain(typeSql(type)), type }];
  return { partial, final: `cast(${quoteName(again)}(${column}) as ${typeSql(type)})` };
}

const decimalType = (text: string): PlanType => ({
  id: "DECIMAL",
  type_info: { width: 38, scale: Number(/,(\d+)\)$/.exec(text)?.[1] ?? 0) },
});

type Halved = { readonly partial: Fragment; readonly finals: readonly string[] };

/** Groups of the rows that are in one task, and how such groups are put together. */
export function halved(below: Fragment, { list, aggregates }: Groups): Halved {
  const partials: Partial[] = [];
  const finals: string[] = [];
  for (const one of aggregates.filter(canCombine)) {
    const { partial, final } = halvesOf(one, list.length + partials.length);
    partials.push(...partial);
    finals.push(final);
  }
  const keys = list.map((one) => expressionSql(one));
  const select = (columns: readonly string[]): string =>
    [...keys, ...columns].map((sql, i) => `${sql} as ${columnName(i)}`).join(", ") || "1 as c0";
  const by = keys.length > 0 ? ` group by ${keys.map((_, i) => i + 1).join(", ")}` : "";
  const grouped = mapped(below, (from) => `select ${select(partials.map(({ sql }) => sql))} from ${from}${by}`, {
    types: [...list.map(typeOf), ...partials.map(({ type }) => type)],
    spread: { kind: "any" },
    bytes: below.bytes / 4,
  });
  const alone = (from: string): string => `select ${select(partials.map(({ plain }) => plain))} from ${from}`;
  return { partial: keys.length > 0 ? orPlain(grouped, below, { keys, select: alone }) : grouped, finals };
}
