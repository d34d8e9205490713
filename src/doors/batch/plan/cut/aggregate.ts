/** GROUP BY and DISTINCT: partial in the tasks that read, final in the tasks that the groups were hashed to. */
import { expressionSql, orderSql, typeOf } from "#doors/batch/plan/expressions.ts";
import { callOf, canCombine, constantsOf, halved, type Groups } from "./combine.ts";
import { isOne, mapped, orPlain, unsplit, type Fragment, type Spread } from "./fragment.ts";
import type { PlanExpression, PlanNode, PlanType } from "#doors/batch/plan/plan-json.ts";
import { columnName, columnNames } from "#doors/batch/plan/quoting.ts";
import { allKeys, keysOf, type Cut, type Cutter } from "./cutter.ts";
import { Unsplittable } from "#doors/batch/plan/unsplittable.ts";

/** Their arguments are all in the plan, and they depend on nothing but the rows of a group. */
export const knownAggregates: ReadonlySet<string> = new Set([
  "any_value",
  "approx_count_distinct",
  "arg_max",
  "arg_max_null",
  "arg_min",
  "arg_min_null",
  "array_agg",
  "avg",
  "bit_and",
  "bit_or",
  "bit_xor",
  "bool_and",
  "bool_or",
  "corr",
  "count",
  "count_if",
  "count_star",
  "countif",
  "covar_pop",
  "covar_samp",
  "entropy",
  "first",
  "geometric_mean",
  "histogram",
  "kurtosis",
  "kurtosis_pop",
  "last",
  "list",
  "mad",
  "max",
  "max_by",
  "median",
  "min",
  "min_by",
  "mode",
  "product",
  "quantile_cont",
  "quantile_disc",
  "regr_avgx",
  "regr_avgy",
  "regr_count",
  "regr_intercept",
  "regr_r2",
  "regr_slope",
  "regr_sxx",
  "regr_sxy",
  "regr_syy",
  "sem",
  "skewness",
  "stddev",
  "stddev_pop",
  "stddev_samp",
  "string_agg",
  "sum",
  "sum_no_overflow",
  "var_pop",
  "var_samp",
  "variance",
]);

export function aggregateFragment(node: PlanNode, cutter: Cutter): Cut {
  const below = cutter.only(node);
  if (!below) return undefined;
  const groups: Groups = {
    list: node.groups ?? [],
    aggregates: node.expressions ?? [],
    types: [...(node.groups ?? []), ...(node.expressions ?? [])].map(typeOf),
  };
  for (const one of groups.aggregates) checkAggregate(one);
  const sets = setsOf(node, groups);
  if (sets) return groupingSets(sets, groups, below, cutter);
  if (isOne(below)) return whole(below, groups, below.spread);
  const keys = keysOf(groups.list);
  const { spread } = below;
  if (spread.kind === "hash" && spread.keys.every((key) => keys.some(({ sql }) => sql === key)))
    return whole(unsplit(below), groups, {
      ...spread,
      keys: spread.keys.map((key) => columnName(keys.findIndex(({ sql }) => sql === key))),
    });
  if (groups.aggregates.every(canCombine)) return combined(below, groups, cutter);
  const moved =
    keys.length > 0
      ? cutter.grouped(below, keys, "groups")
      : cutter.gather(below, "rows of an aggregate that cannot be combined");
  if (!moved) return undefined;
  return whole(moved, groups, movedGroups(moved.spread, keys.length));
}

const movedGroups = (spread: Spread, count: number): Spread =>
  spread.kind === "hash" ? { ...spread, keys: Array.from({ length: count }, (_, i) => columnName(i)) } : spread;

function checkAggregate(e: PlanExpression): void {
  const { name = "", original_arguments: given, children = [] } = e;
  if (e.expression_class !== "BOUND_AGGREGATE" || !knownAggregates.has(name))
    throw new Unsplittable(`the aggregate ${name || e.expression_class}`);
  if (given && given.length !== children.length + constantsOf(e).length)
    throw new Unsplittable(`the aggregate ${name} with constants`);
  // Rows have another order once they have moved.
  if (ordered.has(name) && (e.order_bys?.orders ?? []).length === 0)
    throw new Unsplittable(`the aggregate ${name} without an order`);
}

const ordered: ReadonlySet<string> = new Set(["array_agg", "last", "list", "string_agg"]);

function whole(rows: Fragment, { list, aggregates, types }: Groups, spread: Spread): Fragment {
  const columns = [...list.map((one) => expressionSql(one)), ...aggregates.map(callOf)];
  const named = columns.map((sql, i) => `${sql} as ${columnName(i)}`).join(", ");
  const by = list.length > 0 ? ` group by ${list.map((_, i) => i + 1).join(", ")}` : "";
  return mapped(rows, (from) => `select ${named || "1 as c0"} from ${from}${by}`, {
    types,
    spread,
    bytes: rows.bytes / 4,
  });
}

type GroupingSets = {
  readonly sets: readonly (readonly number[])[];
  readonly functions: readonly (readonly number[])[];
};

/** Undefined where there is one set, of all keys. */
function setsOf({ grouping_sets: sets = [], grouping_functions: functions = [] }: PlanNode, { list }: Groups) {
  const all = list.map((_, i) => i);
  const isPlain = sets.length === 0 || (sets.length === 1 && sets[0]?.length === list.length);
  if (isPlain && functions.length === 0) return undefined;
  return { sets: sets.length > 0 ? sets : [all], functions } satisfies GroupingSets;
}

/** Groups of all keys are made where the rows are; one task puts them together to all sets. */
function groupingSets(how: GroupingSets, groups: Groups, below: Fragment, cutter: Cutter): Cut {
  const { list, aggregates, types } = groups;
  const all: readonly PlanType[] = [...types, ...how.functions.map(() => ({ id: "BIGINT" }))];
  const isCombined = !isOne(below) && list.length > 0 && aggregates.every(canCombine);
  const { partial, finals } = halved(below, groups);
  const rows = cutter.gather(isCombined ? partial : below, isCombined ? "groups of all keys" : "rows of grouping sets");
  if (!rows) return undefined;
  const keys = list.map((one, i) => (isCombined ? columnName(i) : expressionSql(one)));
  const columns = [
    ...keys.map((_, i) => `g${i}`),
    ...(isCombined ? finals : aggregates.map(callOf)),
    ...how.functions.map((of) => `grouping(${of.map((i) => `g${i}`).join(", ")})`),
  ].map((sql, i) => `${sql} as ${columnName(i)}`);
  const inner = keys.map((sql, i) => `${sql} as g${i}`);
  const sets = how.sets.map((set) => `(${set.map((i) => `g${i}`).join(", ")})`).join(", ");
  return mapped(
    rows,
    (from) =>
      `select ${columns.join(", ")} from (select ${[...inner, "*"].join(", ")} from ${from}) group by grouping sets (${sets})`,
    { types: all, bytes: rows.bytes / 4 },
  );
}

function combined(below: Fragment, groups: Groups, cutter: Cutter): Cut {
  const { list, types } = groups;
  const { partial, finals } = halved(below, groups);
  const keys = list.map((one, i) => ({ sql: columnName(i), type: typeOf(one) }));
  const moved =
    list.length > 0 ? cutter.grouped(partial, keys, "partial groups") : cutter.gather(partial, "partial aggregates");
  if (!moved) return undefined;
  const names = keys.map(({ sql }) => sql);
  const last = [...names, ...finals.map((sql, i) => `${sql} as ${columnName(list.length + i)}`)].join(", ");
  const groupBy = list.length > 0 ? ` group by ${names.join(", ")}` : "";
  return mapped(moved, (from) => `select ${last || "1 as c0"} from ${from}${groupBy}`, {
    types,
    bytes: moved.bytes / 2,
  });
}

export function distinctFragment(node: PlanNode, cutter: Cutter): Cut {
  const below = cutter.only(node);
  if (!below) return undefined;
  if (node.distinct_type !== "DISTINCT_ON") return distinctRows(below, cutter);
  const orders = node.order_by?.orders ?? [];
  // Of several rows one is picked: which one has to be said, or depends on how rows were spread.
  if (orders.length === 0) throw new Unsplittable("DISTINCT ON without an order");
  const targets = node.distinct_targets ?? [];
  const on = `on (${targets.map((one) => expressionSql(one)).join(", ")}) ${columnNames(below.types.length)}`;
  const distinct = (rows: Fragment): Fragment =>
    mapped(rows, (from) => `select distinct ${on} from ${from} order by ${orderSql(orders)}`, {
      bytes: rows.bytes / 2,
    });
  if (isOne(below)) return distinct(below);
  const moved = cutter.grouped(distinct(below), keysOf(targets), "distinct rows");
  return moved && distinct(moved);
}

/** Duplicates are dropped before rows are moved, and again behind that. */
export function distinctRows(below: Fragment, cutter: Cutter): Cut {
  const names = columnNames(below.types.length);
  const distinct = (rows: Fragment): Fragment =>
    mapped(rows, (from) => `select distinct ${names} from ${from}`, { bytes: rows.bytes / 2 });
  if (isOne(below)) return distinct(below);
  const keys = allKeys(below);
  if (keys.length === 0) throw new Unsplittable("distinct rows without columns");
  const select = (from: string): string => `select ${names} from ${from}`;
  const here = orPlain(distinct(below), below, { keys: keys.map(({ sql }) => sql), select });
  const moved = cutter.grouped(here, keys, "distinct rows");
  return moved && distinct(moved);
}
