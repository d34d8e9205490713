/** Joins: the small side goes to every task whole, or both sides are partitioned by what they are joined on. */
import { comparison, expressionSql, typeOf, type Reference } from "#doors/batch/plan/expressions.ts";
import { isOne, mapped, mergeInputs, movedSpread, together, type Fragment } from "./fragment.ts";
import { familyOf, type PartitionKey } from "#doors/batch/plan/partitioner.ts";
import type { PlanExpression, PlanNode, PlanType } from "#doors/batch/plan/plan-json.ts";
import { columnName, indices } from "#doors/batch/plan/quoting.ts";
import type { Branch, Parts } from "#doors/batch/plan/stage.ts";
import { childOf, typeAt, type Cut, type Cutter } from "./cutter.ts";
import { Unsplittable } from "#doors/batch/plan/unsplittable.ts";

/** Which side may be given to every task whole without rows being lost or doubled. */
const mayRepeat: Readonly<Record<string, { readonly left: boolean; readonly right: boolean }>> = {
  INNER: { left: true, right: true },
  LEFT: { left: false, right: true },
  SEMI: { left: false, right: true },
  ANTI: { left: false, right: true },
  MARK: { left: false, right: true },
  SINGLE: { left: false, right: true },
  RIGHT: { left: true, right: false },
  RIGHT_SEMI: { left: true, right: false },
  RIGHT_ANTI: { left: true, right: false },
  OUTER: { left: false, right: false },
  FULL: { left: false, right: false },
};

type Join = {
  readonly kind: string;
  /** Over l.c0... and r.c0... */
  readonly on: string;
  readonly leftKeys: readonly PartitionKey[];
  readonly rightKeys: readonly PartitionKey[];
  /** Of a mark join: whether the left value is among the right ones. */
  readonly mark?: { readonly left: string; readonly right: string };
  readonly node: PlanNode;
};

export function joinFragment(node: PlanNode, cutter: Cutter): Cut {
  const left = cutter.cut(childOf(node, 0));
  const right = cutter.cut(childOf(node, 1));
  if (!left || !right) return undefined;
  return joined(joinOf(node, left), left, right, cutter);
}

/**
 * A correlated query: what is on the right depends on the distinct rows of the left, which are therefore written down
 * and read twice.
 */
export function deliminatedFragment(node: PlanNode, cutter: Cutter): Cut {
  if (node.delim_flipped) throw new Unsplittable("a correlated query the other way round");
  const below = cutter.cut(childOf(node, 0));
  if (!below) return undefined;
  const columns = node.duplicate_eliminated_columns ?? [];
  const keys = columns.map((one) => ({ sql: expressionSql(one), type: typeOf(one) }));
  if (keys.length === 0) throw new Unsplittable("a correlated query without correlated columns");
  const left = isOne(below) ? below : cutter.partitioned(below, keys, "rows with a correlated query");
  if (!left) return undefined;
  const list = keys.map(({ sql }, i) => `${sql} as ${columnName(i)}`).join(", ");
  const names = keys.map((_, i) => columnName(i));
  const rows = mapped(left, (from) => `select distinct ${list} from ${from}`, {
    types: keys.map(({ type }) => type),
    spread: left.spread.kind === "hash" ? { ...left.spread, keys: names } : left.spread,
    bytes: left.bytes / 4,
  });
  const right = cutter.withDelim(rows, () => cutter.cut(childOf(node, 1)));
  if (!right) return undefined;
  return joined(joinOf(node, left), left, right, cutter);
}

function joinOf(node: PlanNode, { types }: Fragment): Join {
  const l = (index: number): string => `l.${columnName(index)}`;
  const r = (index: number): string => `r.${columnName(index)}`;
  const kind = node.type === "LOGICAL_CROSS_PRODUCT" ? "INNER" : (node.join_type ?? "");
  if (!Object.hasOwn(mayRepeat, kind)) throw new Unsplittable(`the join ${kind}`);
  if (node.predicate !== undefined) throw new Unsplittable("a join with a further predicate");
  if (node.type === "LOGICAL_CROSS_PRODUCT") return { kind, on: "true", leftKeys: [], rightKeys: [], node };
  if (node.type === "LOGICAL_ANY_JOIN") {
    if (!node.condition) throw new Unsplittable("a join without its condition");
    const both = (index: number): string => (index < types.length ? l(index) : r(index - types.length));
    return { kind, on: expressionSql(node.condition, both), leftKeys: [], rightKeys: [], node };
  }
  const conditions = (node.conditions ?? []).map(({ left, right, comparison: sign }) => {
    if (!left || !right) throw new Unsplittable("a join condition that is no comparison");
    return { left, right, sign: comparison(sign) };
  });
  const equal = conditions.filter(({ sign }) => sign === "=" || sign === "is not distinct from");
  return {
    kind,
    on: conditions
      .map((one) => `${expressionSql(one.left, l)} ${one.sign} ${expressionSql(one.right, r)}`)
      .join(" and "),
    leftKeys: equal.map(({ left }) => keyOf(left)),
    rightKeys: equal.map(({ right }) => keyOf(right)),
    ...(kind === "MARK" && { mark: markOf(conditions, l) }),
    node,
  };
}

type Condition = { readonly left: PlanExpression; readonly right: PlanExpression; readonly sign: string };

function markOf([first, ...others]: readonly Condition[], l: Reference): NonNullable<Join["mark"]> {
  if (!first || others.length > 0 || first.sign !== "=") throw new Unsplittable("a correlated IN");
  return { left: expressionSql(first.left, l), right: expressionSql(first.right) };
}

const keyOf = (e: PlanExpression): PartitionKey => ({ sql: expressionSql(e), type: typeOf(e) });

function joined(join: Join, left: Fragment, right: Fragment, cutter: Cutter): Cut {
  const sides = brought(join, left, right, cutter);
  return sides && putTogether(join, ...sides);
}

/**
 * Of two sides that were partitioned for this join, each may be read in pieces if the other one may be read by several
 * tasks: that is how a partition of a frequent key is split.
 */
function splitsOf({ kind }: Join, [left, right]: Sides): readonly string[] {
  const isMoved = left.stage !== undefined && right.stage !== undefined && left.stage !== right.stage;
  if (!isMoved || left.spread.kind !== "hash" || right.spread.kind !== "hash") return [];
  const may = mayRepeat[kind];
  return [...(may?.right ? [left.stage] : []), ...(may?.left ? [right.stage] : [])];
}

type Sides = readonly [left: Fragment, right: Fragment];

/** Both sides so that each task has all that its rows are joined with. */
function brought(join: Join, left: Fragment, right: Fragment, cutter: Cutter): Sides | undefined {
  const may = mayRepeat[join.kind] ?? { left: false, right: false };
  if (isOne(left) && isOne(right)) return [left, right];
  if (isOne(right) && may.right) return [left, right];
  if (isOne(left) && may.left) return [left, right];
  if (areTogether(join, left, right)) return [left, right];
  const { broadcastBytes } = cutter.settings;
  const canHash = join.leftKeys.length > 0 && join.kind !== "MARK";
  const small = [...(may.right ? (["right"] as const) : []), ...(may.left ? (["left"] as const) : [])].toSorted(
    (a, b) => sizeOf(a, left, right) - sizeOf(b, left, right),
  );
  const [smaller] = small;
  if (smaller !== undefined && (!canHash || sizeOf(smaller, left, right) <= broadcastBytes))
    return gathered(smaller, left, right, cutter);
  if (canHash) return hashed(join, left, right, { cutter, first: smaller });
  const [a, b] = [cutter.gather(left, "a side of a join"), cutter.gather(right, "a side of a join")];
  return a && b ? [a, b] : undefined;
}

const sizeOf = (side: "left" | "right", left: Fragment, right: Fragment): number =>
  side === "left" ? left.bytes : right.bytes;

function gathered(side: "left" | "right", left: Fragment, right: Fragment, cutter: Cutter): Sides | undefined {
  const whole = cutter.gather(side === "left" ? left : right, "the small side of a join");
  if (!whole) return undefined;
  return side === "left" ? [whole, right] : [left, whole];
}

/** The side that is thought to be smaller goes first: if it is small indeed, the other one stays where it is. */
function hashed(
  { leftKeys, rightKeys }: Join,
  left: Fragment,
  right: Fragment,
  { cutter, first }: { readonly cutter: Cutter; readonly first: "left" | "right" | undefined },
): Sides | undefined {
  const about = "a side of a join";
  if (first === undefined) {
    const [a, b] = [cutter.partitioned(left, leftKeys, about), cutter.partitioned(right, rightKeys, about)];
    return a && b ? [a, b] : undefined;
  }
  const [keys, otherKeys] = first === "left" ? [leftKeys, rightKeys] : [rightKeys, leftKeys];
  const moved = cutter.partitioned(first === "left" ? left : right, keys, about);
  if (!moved) return undefined;
  if (moved.bytes <= cutter.settings.broadcastBytes) {
    const whole = cutter.whole(moved);
    return first === "left" ? [whole, right] : [left, whole];
  }
  const other = cutter.partitioned(first === "left" ? right : left, otherKeys, about);
  if (!other) return undefined;
  return first === "left" ? [moved, other] : [other, moved];
}

/** Whether equal keys are in the same task already. */
function areTogether({ leftKeys, rightKeys, kind }: Join, { spread: a }: Fragment, { spread: b }: Fragment): boolean {
  if (kind === "MARK" || a.kind !== "hash" || b.kind !== "hash" || a.keys.length !== b.keys.length) return false;
  return a.keys.every((key, i) => {
    const at = leftKeys.findIndex(({ sql }) => sql === key);
    const [l, r] = [leftKeys[at], rightKeys[at]];
    return l && r && r.sql === b.keys[i] && a.families[i] === b.families[i] && familyOf(l.type) === familyOf(r.type);
  });
}

const words: Readonly<Record<string, string>> = {
  INNER: "join",
  LEFT: "left join",
  SINGLE: "left join",
  RIGHT: "right join",
  FULL: "full join",
  OUTER: "full join",
  SEMI: "semi join",
  ANTI: "anti join",
};

function putTogether(join: Join, left: Fragment, right: Fragment): Fragment {
  const { kind, on, node, mark } = join;
  const splits = splitsOf(join, [left, right]);
  const leftKept = node.left_projection_map ?? indices(left.types.length);
  const rightKept = node.right_projection_map ?? indices(right.types.length);
  const leftColumns = leftKept.map((i) => ({ sql: `l.${columnName(i)}`, type: typeAt(left, i) }));
  const rightColumns = rightKept.map((i) => ({ sql: `r.${columnName(i)}`, type: typeAt(right, i) }));
  const shape = ((): {
    columns: readonly { sql: string; type: PlanType }[];
    from: (a: string, b: string) => string;
  } => {
    if (mark) return { columns: leftColumns, from: (a) => `${a} l` };
    if (kind === "RIGHT_SEMI" || kind === "RIGHT_ANTI") {
      const word = kind === "RIGHT_SEMI" ? "exists" : "not exists";
      return { columns: rightColumns, from: (a, b) => `${b} r where ${word} (select 1 from ${a} l where ${on})` };
    }
    const columns = kind === "SEMI" || kind === "ANTI" ? leftColumns : [...leftColumns, ...rightColumns];
    return { columns, from: (a, b) => `${a} l ${words[kind]} ${b} r on ${on}` };
  })();
  const marked = (b: string): readonly string[] => (mark ? [`(${mark.left} in (select ${mark.right} from ${b}))`] : []);
  const combine = (a: Branch, b: Branch): Branch => {
    const list = [...shape.columns.map(({ sql }) => sql), ...marked(b.sql)].map(
      (sql, i) => `${sql} as ${columnName(i)}`,
    );
    return {
      sql: `(select ${list.join(", ") || "1 as c0"} from ${shape.from(a.sql, b.sql)})`,
      inputs: mergeInputs(a.inputs, b.inputs),
      parts: splits.length > 0 ? { by: "partition", splits } : partsOf(a.parts, b.parts),
    };
  };
  const types = [...shape.columns.map(({ type }) => type), ...(mark ? [{ id: "BOOLEAN" }] : [])];
  const moving = isOne(left) ? right : left;
  const kept = isOne(left)
    ? [...leftKept.map(() => undefined), ...rightKept]
    : [...leftKept, ...rightKept.map(() => undefined)];
  const spread = kind.startsWith("RIGHT_") ? movedSpread(right.spread, rightKept) : movedSpread(moving.spread, kept);
  return {
    branches: left.branches.flatMap((a) => right.branches.map((b) => combine(a, b))),
    types,
    // Rows that an outer join makes up have no keys that they could have been partitioned by.
    spread: kind === "FULL" || kind === "OUTER" || (kind === "RIGHT" && !isOne(left)) ? unkeyed(spread) : spread,
    bytes: Math.max(left.bytes, right.bytes),
  };
}

/** One side whole in every task changes nothing; two that are partitioned alike have to stay so. */
const partsOf = (a: Parts, b: Parts): Parts => (a.by === "one" ? b : b.by === "one" ? a : together(a));

const unkeyed = (spread: Fragment["spread"]): Fragment["spread"] => (spread.kind === "hash" ? { kind: "any" } : spread);
