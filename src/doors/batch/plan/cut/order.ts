/** ORDER BY, LIMIT, and both together. */
import { expressionSql, orderSql, sortKeySql } from "#doors/batch/plan/expressions.ts";
import { isOne, mapped, selectAll, type Fragment } from "./fragment.ts";
import type { PlanNode } from "#doors/batch/plan/plan-json.ts";
import { columnNames, indices } from "#doors/batch/plan/quoting.ts";
import { readInOrder, typeAt, type Cut, type Cutter } from "./cutter.ts";
import { Unsplittable } from "#doors/batch/plan/unsplittable.ts";

/**
 * Every task writes its rows in order, with samples of where they might be cut; then each task takes one range of all
 * of them. Read one range after the other, they are in order.
 */
export function orderFragment(node: PlanNode, cutter: Cutter): Cut {
  const below = cutter.only(node);
  if (!below) return undefined;
  const orders = node.orders ?? [];
  const kept = node.projection_map ?? node.projections ?? indices(below.types.length);
  const sorted = isOne(below) ? sortedHere(below, orderSql(orders)) : sortedByRange(below, orders, cutter);
  if (!sorted) return undefined;
  if (kept.length === below.types.length && kept.every((from, to) => from === to)) return sorted;
  const columns = kept.map((from, to) => `c${from} as c${to}`).join(", ");
  return mapped(sorted, (rows) => `select ${columns} from ${rows}`, { types: kept.map((i) => typeAt(below, i)) });
}

const sortedHere = (below: Fragment, order: string): Fragment =>
  mapped(below, (from) => selectAll(below.types.length, from, ` order by ${order}`));

function sortedByRange(below: Fragment, orders: NonNullable<PlanNode["orders"]>, cutter: Cutter): Cut {
  for (const { expression } of orders) expressionSql(expression);
  const stage = cutter.stage("sort", below, { kind: "sorted", key: sortKeySql(orders) });
  const facts = cutter.need(stage);
  return facts && readInOrder(stage, facts, orderSql(orders));
}

/** The first rows of each task are enough. */
export function topFragment(node: PlanNode, cutter: Cutter): Cut {
  const below = cutter.only(node);
  if (!below) return undefined;
  const { limit = 0, offset = 0, orders = [] } = node;
  const order = ` order by ${orderSql(orders)}`;
  const count = below.types.length;
  const few = isOne(below)
    ? below
    : cutter.gather(
        mapped(below, (from) => selectAll(count, from, `${order} limit ${Number(limit) + Number(offset)}`), {
          bytes: 1_000,
        }),
        "the first rows of each part",
      );
  return (
    few &&
    mapped(
      few,
      (from) => selectAll(count, from, `${order} limit ${limit}${Number(offset) > 0 ? ` offset ${offset}` : ""}`),
      {
        bytes: 1_000,
      },
    )
  );
}

export function limitFragment(node: PlanNode, cutter: Cutter): Cut {
  const below = cutter.only(node);
  if (!below) return undefined;
  const limit = constantOf(node.limit_val);
  const offset = constantOf(node.offset_val) ?? 0;
  const names = columnNames(below.types.length);
  const cutTo = (rows: number | undefined): string => (rows === undefined ? "" : ` limit ${rows}`);
  const few = isOne(below)
    ? below
    : cutter.gather(
        mapped(
          below,
          (from) => `select ${names} from ${from}${cutTo(limit === undefined ? undefined : limit + offset)}`,
        ),
        "the first rows of each part",
      );
  return (
    few && mapped(few, (from) => `select ${names} from ${from}${cutTo(limit)}${offset > 0 ? ` offset ${offset}` : ""}`)
  );
}

function constantOf(value: PlanNode["limit_val"]): number | undefined {
  if (!value || value.type === "UNSET") return undefined;
  if (value.type !== "CONSTANT_VALUE") throw new Unsplittable("a limit that is not a number of rows");
  return Number(value.constant_integer ?? 0);
}
