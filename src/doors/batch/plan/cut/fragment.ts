/** A piece of a query while it is being cut: SQL that a task runs, and how its rows are spread over tasks. */
import type { PlanType } from "#doors/batch/plan/plan-json.ts";
import { columnNames } from "#doors/batch/plan/quoting.ts";
import type { Branch, Input, Parts } from "#doors/batch/plan/stage.ts";

/** Keys are expressions over the fragment's columns; "?" stands for one that is no longer among them. */
export type Spread =
  | { readonly kind: "one" }
  | { readonly kind: "any" }
  | { readonly kind: "hash"; readonly keys: readonly string[]; readonly families: readonly string[] };

export type Fragment = {
  readonly branches: readonly Branch[];
  readonly types: readonly PlanType[];
  readonly spread: Spread;
  /** Estimated, or seen where it was read from a stage that has ended. */
  readonly bytes: number;
  /** Where it is what a stage wrote, as it is. */
  readonly stage?: string;
};

export const isOne = ({ spread }: Fragment): boolean => spread.kind === "one";

/** The same spread with SQL around it. `change` gets what stands in brackets after FROM. */
export function mapped(
  fragment: Fragment,
  change: (from: string) => string,
  more: Partial<Pick<Fragment, "types" | "spread" | "bytes">> = {},
): Fragment {
  const { stage: _no, ...rest } = fragment;
  const branches = fragment.branches.map(({ plain, ...one }) => ({
    ...one,
    sql: `(${change(one.sql)})`,
    ...(plain && { plain: { ...plain, sql: `(${change(plain.sql)})` } }),
  }));
  return { ...rest, branches, ...more };
}

const probeRows = 20_000;
/**
 * So many different keys among the first rows that grouping them in each task is not worth its while. Of a million keys
 * in all, as many as a task has rows, a hundredth of these rows have one that came before.
 */
const groupsMax = 0.99;

/**
 * Groups that are made before rows move, unless the first rows of a task show that almost each is a group of its own:
 * then they move as they are. Asked only where looking costs little: over one source, without a filter.
 */
export function orPlain(
  grouped: Fragment,
  below: Fragment,
  { keys, select }: { readonly keys: readonly string[]; readonly select: (from: string) => string },
): Fragment {
  const branches = grouped.branches.map((branch, i): Branch => {
    const from = below.branches[i]?.sql ?? "";
    const isCheap = branch.inputs.length === 1 && branch.parts.by === "source" && !from.includes(" where ");
    if (!isCheap) return branch;
    const unless =
      `select count(distinct hash(${keys.join(", ")})) > ${groupsMax} * count(*) ` +
      `from (select * from ${from} limit ${probeRows})`;
    return { ...branch, plain: { unless, sql: `(${select(from)})` } };
  });
  return { ...grouped, branches };
}

/** What needs equal keys in one task: their partitions are not split. */
export const together = (parts: Parts): Parts => (parts.by === "partition" ? { by: "partition" } : parts);

/** The same, for what relies on how rows are spread. */
export const unsplit = (fragment: Fragment): Fragment => ({
  ...fragment,
  branches: fragment.branches.map((one) => ({ ...one, parts: together(one.parts) })),
});

export const mergeInputs = (...lists: readonly (readonly Input[])[]): readonly Input[] =>
  [...new Map(lists.flat().map((input) => [input.name, input])).values()].toSorted((a, b) =>
    a.name < b.name ? -1 : 1,
  );

/** What a column is called in the fragment above, where it is handed on under another number. */
export function movedKeys(keys: readonly string[], from: readonly (number | undefined)[]): readonly string[] {
  return keys.map((key) => {
    const at = /^c\d+$/.test(key) ? from.indexOf(Number(key.slice(1))) : -1;
    return at < 0 ? "?" : `c${at}`;
  });
}

export const movedSpread = (spread: Spread, from: readonly (number | undefined)[]): Spread =>
  spread.kind === "hash" ? { ...spread, keys: movedKeys(spread.keys, from) } : spread;

export const oneBranch = (sql: string, inputs: readonly Input[] = [], parts: Parts = { by: "one" }): Branch => ({
  sql,
  inputs,
  parts,
});

export const selectAll = (count: number, from: string, rest = ""): string =>
  `select ${count === 0 ? "1 as c0" : columnNames(count)} from ${from}${rest}`;
