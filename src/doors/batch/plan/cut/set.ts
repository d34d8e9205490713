/** UNION, EXCEPT, INTERSECT. */
import { isOne, mergeInputs, oneBranch, type Fragment } from "./fragment.ts";
import type { PlanNode } from "#doors/batch/plan/plan-json.ts";
import { columnNames } from "#doors/batch/plan/quoting.ts";
import { distinctRows } from "./aggregate.ts";
import { allKeys, type Cut, type Cutter } from "./cutter.ts";
import { Unsplittable } from "#doors/batch/plan/unsplittable.ts";

/** Rows of all sides, each in its own tasks: nothing has to be moved for it. */
export function unionFragment(node: PlanNode, cutter: Cutter): Cut {
  const sides = (node.children ?? []).map((child) => cutter.cut(child));
  if (sides.some((side) => side === undefined)) return undefined;
  const all = sides as readonly Fragment[];
  const [first] = all;
  if (!first) throw new Unsplittable("a union of nothing");
  const united = unitedRows(all, first);
  return node.setop_all === false ? distinctRows(united, cutter) : united;
}

function unitedRows(all: readonly Fragment[], first: Fragment): Fragment {
  const bytes = all.reduce((sum, side) => sum + side.bytes, 0);
  if (all.every(isOne)) {
    const sql = all.map((side) => sqlOf(side)).join(" union all ");
    const inputs = mergeInputs(...all.map((side) => side.branches[0]?.inputs ?? []));
    return { branches: [oneBranch(`(${sql})`, inputs)], types: first.types, spread: { kind: "one" }, bytes };
  }
  return { branches: all.flatMap((side) => side.branches), types: first.types, spread: { kind: "any" }, bytes };
}

const sqlOf = ({ branches, types }: Fragment): string => `select ${columnNames(types.length)} from ${branches[0]?.sql}`;

export function setFragment(node: PlanNode, cutter: Cutter): Cut {
  const [left, right] = (node.children ?? []).map((child) => cutter.cut(child));
  if (!left || !right) return undefined;
  const word = node.type === "LOGICAL_EXCEPT" ? "except" : "intersect";
  const sign = node.setop_all ? `${word} all` : word;
  const [a, b] =
    isOne(left) && isOne(right)
      ? [left, right]
      : [cutter.partitioned(left, allKeys(left), word), cutter.partitioned(right, allKeys(right), word)];
  if (!a || !b) return undefined;
  return {
    branches: [
      {
        sql: `(${sqlOf(a)} ${sign} ${sqlOf(b)})`,
        inputs: mergeInputs(a.branches[0]?.inputs ?? [], b.branches[0]?.inputs ?? []),
        parts: a.branches[0]?.parts ?? { by: "one" },
      },
    ],
    types: left.types,
    spread: a.spread,
    bytes: left.bytes,
  };
}
