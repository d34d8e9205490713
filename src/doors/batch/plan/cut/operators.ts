/** Which operators of a plan are known, and the plainest of them. */
import { aggregateFragment, distinctFragment } from "./aggregate.ts";
import { deliminatedFragment, joinFragment } from "./join.ts";
import { limitFragment, orderFragment, topFragment } from "./order.ts";
import { setFragment, unionFragment } from "./set.ts";
import { emptyFragment, rowsFragment, scanFragment, valuesFragment } from "./source.ts";
import { windowFragment } from "./window.ts";
import { childOf, projected, typeAt, type Cut, type Cutter } from "./cutter.ts";
import { expressionSql, typeOf } from "#doors/batch/plan/expressions.ts";
import { mapped, movedSpread, oneBranch } from "./fragment.ts";
import type { PlanNode } from "#doors/batch/plan/plan-json.ts";
import { columnName, indices } from "#doors/batch/plan/quoting.ts";
import { Unsplittable } from "#doors/batch/plan/unsplittable.ts";

export function cutOperator(node: PlanNode, cutter: Cutter): Cut {
  switch (node.type) {
    case "LOGICAL_GET":
      return scanFragment(node, cutter);
    case "LOGICAL_DUMMY_SCAN":
      return { branches: [oneBranch("(select 1 as c0)")], types: [], spread: { kind: "one" }, bytes: 0 };
    case "LOGICAL_EMPTY_RESULT":
      return emptyFragment(node);
    case "LOGICAL_EXPRESSION_GET":
      return valuesFragment(node);
    case "LOGICAL_CHUNK_GET":
      return rowsFragment(node);
    case "LOGICAL_PROJECTION":
      return projection(node, cutter);
    case "LOGICAL_FILTER":
      return filter(node, cutter);
    case "LOGICAL_UNNEST":
      return unnest(node, cutter);
    case "LOGICAL_AGGREGATE_AND_GROUP_BY":
      return aggregateFragment(node, cutter);
    case "LOGICAL_DISTINCT":
      return distinctFragment(node, cutter);
    case "LOGICAL_COMPARISON_JOIN":
    case "LOGICAL_ANY_JOIN":
    case "LOGICAL_CROSS_PRODUCT":
      return joinFragment(node, cutter);
    case "LOGICAL_DELIM_JOIN":
      return deliminatedFragment(node, cutter);
    case "LOGICAL_DELIM_GET":
      return cutter.delim();
    case "LOGICAL_WINDOW":
      return windowFragment(node, cutter);
    case "LOGICAL_ORDER_BY":
      return orderFragment(node, cutter);
    case "LOGICAL_TOP_N":
      return topFragment(node, cutter);
    case "LOGICAL_LIMIT":
      return limitFragment(node, cutter);
    case "LOGICAL_UNION":
      return unionFragment(node, cutter);
    case "LOGICAL_EXCEPT":
    case "LOGICAL_INTERSECT":
      return setFragment(node, cutter);
    case "LOGICAL_MATERIALIZED_CTE":
      return commonTable(node, cutter);
    case "LOGICAL_CTE_REF":
      return cutter.cte(node.cte_index ?? 0);
    default:
      throw new Unsplittable(`the operator ${node.type.replace("LOGICAL_", "").toLowerCase().replaceAll("_", " ")}`);
  }
}

function projection(node: PlanNode, cutter: Cutter): Cut {
  const below = cutter.only(node);
  if (!below) return undefined;
  const list = node.expressions ?? [];
  return projected(below, list);
}

function filter(node: PlanNode, cutter: Cutter): Cut {
  const below = cutter.only(node);
  if (!below) return undefined;
  const kept = node.projection_map ?? indices(below.types.length);
  const where = (node.expressions ?? []).map((one) => expressionSql(one)).join(" and ");
  const columns = kept.map((from, to) => `c${from} as c${to}`).join(", ") || "1 as c0";
  return mapped(below, (from) => `select ${columns} from ${from}${where === "" ? "" : ` where ${where}`}`, {
    types: kept.map((one) => typeAt(below, one)),
    spread: movedSpread(below.spread, kept),
    bytes: below.bytes / 3,
  });
}

function unnest(node: PlanNode, cutter: Cutter): Cut {
  const below = cutter.only(node);
  if (!below) return undefined;
  const count = below.types.length;
  const lists = (node.expressions ?? []).map((one) => {
    if (one.expression_class !== "BOUND_UNNEST" || !one.child) throw new Unsplittable(`unnest of ${one.type}`);
    return { sql: `unnest(${expressionSql(one.child)})`, type: typeOf(one) };
  });
  const columns = [
    ...indices(count).map(columnName),
    ...lists.map(({ sql }, i) => `${sql} as ${columnName(count + i)}`),
  ];
  return mapped(below, (from) => `select ${columns.join(", ")} from ${from}`, {
    types: [...below.types, ...lists.map(({ type }) => type)],
    bytes: below.bytes * 2,
  });
}

function commonTable(node: PlanNode, cutter: Cutter): Cut {
  const index = node.table_index ?? 0;
  const made = cutter.only(node);
  const gathered = made && cutter.gather(made, "a common table", true);
  cutter.setCte(index, gathered);
  // Looked at even where the common table is not there yet: the rest may need other stages as well.
  return cutter.cut(childOf(node, 1));
}
