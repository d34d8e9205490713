/** One job for every combination of a matrix (CI-15 to CI-20). */
import { areEqual, Dictionary, isArray, isPrimitive, textOf, type Value } from "#doors/ci/workflow/expression/value.ts";

export class MatrixFault extends Error {}

export const cellsMax = 256;

export type Cell = {
  readonly matrix: Dictionary;
  /** What tells it from its siblings, for names: `ubuntu, 20`. */
  readonly label: string;
};

/** The cells of an evaluated `strategy.matrix`, in their order. */
export function cellsOf(matrix: Dictionary): readonly Cell[] {
  const vectors = vectorsOf(matrix);
  const includes = filtersOf(matrix.get("include"), "include").map((entry) => ({ entry, hasMatched: false }));
  const excludes = filtersOf(matrix.get("exclude"), "exclude");
  if (vectors.length === 0 && includes.length === 0) throw new MatrixFault("Matrix must define at least one vector");
  for (const exclude of excludes) checkExclude(exclude, vectors);
  const total = vectors.length === 0 ? 0 : vectors.reduce((product, [, values]) => product * values.length, 1);
  if (total > cellsMax * 1024) throw tooMany(total);
  const cells: Cell[] = [];
  for (let index = 0; index < total; index += 1) {
    const original = combination(vectors, index, total);
    if (excludes.some((exclude) => matchesAll(original, exclude))) continue;
    cells.push(extended(original, includes, vectors));
  }
  for (const { entry, hasMatched } of includes) if (!hasMatched) cells.push({ matrix: entry, label: labelOf(entry) });
  if (cells.length > cellsMax) throw tooMany(cells.length);
  return cells;
}

const tooMany = (count: number): MatrixFault =>
  new MatrixFault(`The matrix makes ${count} jobs; at most ${cellsMax} are allowed`);

type Vector = readonly [name: string, values: readonly Value[]];

function vectorsOf(matrix: Dictionary): readonly Vector[] {
  return [...matrix.entries()].flatMap(([name, value]): Vector[] => {
    if (name.toLowerCase() === "include" || name.toLowerCase() === "exclude") return [];
    if (!isArray(value)) throw new MatrixFault(`Matrix vector '${name}' is no list`);
    if (value.length === 0) throw new MatrixFault(`Matrix vector '${name}' does not contain any values`);
    return [[name, value]];
  });
}

function filtersOf(value: Value | undefined, name: string): readonly Dictionary[] {
  if (value === undefined || value === null) return [];
  if (!isArray(value)) throw new MatrixFault(`The matrix's ${name} is no list`);
  return value.map((item) => {
    if (item instanceof Dictionary && item.size > 0) return item;
    if (!(item instanceof Dictionary)) throw new MatrixFault(`An entry of the matrix's ${name} is no mapping`);
    throw new MatrixFault(
      name === "include"
        ? "Matrix include mapping does not contain any values"
        : "Matrix exclude filter must not be empty",
    );
  });
}

function checkExclude(exclude: Dictionary, vectors: readonly Vector[]): void {
  const names = new Set(vectors.map(([name]) => name.toLowerCase()));
  for (const [key] of exclude.entries())
    if (!names.has(key.toLowerCase()))
      throw new MatrixFault(`Matrix exclude key '${key}' does not match any key within the matrix`);
}

/** The first key changes slowest. */
function combination(vectors: readonly Vector[], index: number, total: number): Dictionary {
  const result = new Dictionary();
  let block = total;
  for (const [name, values] of vectors) {
    block /= values.length;
    result.set(name, values[Math.floor(index / block) % values.length] ?? null);
  }
  return result;
}

/** Includes may add to a combination and overwrite what other includes added, never what the matrix itself says. */
function extended(
  original: Dictionary,
  includes: readonly { readonly entry: Dictionary; hasMatched: boolean }[],
  vectors: readonly Vector[],
): Cell {
  const names = new Set(vectors.map(([name]) => name.toLowerCase()));
  const matrix = new Dictionary(original.entries());
  for (const include of includes) {
    const pairs = [...include.entry.entries()];
    const filter = pairs.filter(([key]) => names.has(key.toLowerCase()));
    if (!filter.every(([key, value]) => matches(original.get(key) ?? null, value))) continue;
    include.hasMatched = true;
    for (const [key, value] of pairs) if (!names.has(key.toLowerCase())) matrix.set(key, value);
  }
  return { matrix, label: labelOf(original) };
}

const matchesAll = (matrix: Dictionary, filter: Dictionary): boolean =>
  [...filter.entries()].every(([key, value]) => matches(matrix.get(key) ?? null, value));

/** Leaf by leaf, and loosely, as `==` compares. */
function matches(value: Value, filter: Value): boolean {
  if (isPrimitive(filter)) return areEqual(value, filter);
  if (isArray(filter)) return isArray(value) && filter.every((item, index) => matches(value[index] ?? null, item));
  return value instanceof Dictionary && matchesAll(value, filter);
}

function labelOf(matrix: Dictionary): string {
  return leavesOf(matrix)
    .map((leaf) => textOf(leaf))
    .filter((text) => text !== "")
    .join(", ");
}

function leavesOf(value: Value): readonly Value[] {
  if (value instanceof Dictionary) return [...value.values()].flatMap((item) => leavesOf(item));
  return isArray(value) ? value.flatMap((item) => leavesOf(item)) : [value];
}

const nameLengthMax = 100;

/** `job (a, b)`, cut to 100 characters. */
export function cellName(job: string, label: string): string {
  const name = label === "" ? job : `${job} (${label})`;
  return name.length > nameLengthMax ? `${name.slice(0, nameLengthMax - 3)}...` : name;
}
