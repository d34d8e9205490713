/** Column types as SQL, and how values of each travel between tasks: Parquet cannot hold all of them as they are. */
import type { PlanType } from "./plan-json.ts";
import { quoteName } from "./quoting.ts";
import { Unsplittable } from "./unsplittable.ts";

const literalTypes: Readonly<Record<string, string>> = {
  INTEGER_LITERAL: "INTEGER",
  STRING_LITERAL: "VARCHAR",
  '"NULL"': "INTEGER",
  NULL: "INTEGER",
  SQLNULL: "INTEGER",
};

const plainTypes: ReadonlySet<string> = new Set([
  "BOOLEAN",
  "TINYINT",
  "SMALLINT",
  "INTEGER",
  "BIGINT",
  "UTINYINT",
  "USMALLINT",
  "UINTEGER",
  "UBIGINT",
  "FLOAT",
  "DOUBLE",
  "VARCHAR",
  "BLOB",
  "DATE",
  "TIME",
  "TIMESTAMP",
  "TIMESTAMP_NS",
  "TIMESTAMP WITH TIME ZONE",
  "UUID",
]);

/** Written as another type, and cast back by the reader. */
const castTypes: Readonly<Record<string, string>> = {
  HUGEINT: "DECIMAL(38,0)",
  UHUGEINT: "VARCHAR",
  INTERVAL: "VARCHAR",
  "TIME WITH TIME ZONE": "VARCHAR",
  TIMESTAMP_S: "TIMESTAMP",
  TIMESTAMP_MS: "TIMESTAMP",
  BIT: "VARCHAR",
};

export function typeSql(type: PlanType): string {
  const { id, type_info: info } = type;
  switch (id) {
    case "DECIMAL":
      return `DECIMAL(${info?.width ?? 18},${info?.scale ?? 0})`;
    case "LIST":
      return `${typeSql(childOf(type))}[]`;
    case "STRUCT": {
      const fields = info?.child_types ?? [];
      if (fields.length === 0 || fields.some(({ first }) => !first)) throw new Unsplittable("a struct without names");
      return `STRUCT(${fields.map(({ first = "", second }) => `${quoteName(first)} ${typeSql(second)}`).join(", ")})`;
    }
    case "MAP": {
      const [key, value] = childOf(type).type_info?.child_types ?? [];
      if (!key || !value) throw new Unsplittable("a map without types");
      return `MAP(${typeSql(key.second)}, ${typeSql(value.second)})`;
    }
    default: {
      const known = literalTypes[id] ?? id;
      if (!plainTypes.has(known) && !Object.hasOwn(castTypes, known)) throw new Unsplittable(`the type ${id}`);
      return known;
    }
  }
}

const childOf = ({ id, type_info: info }: PlanType): PlanType => {
  if (!info?.child_type) throw new Unsplittable(`the type ${id} without what is in it`);
  return info.child_type;
};

/** The type under which a column is written to a pack; undefined: as it is. */
export function carriedAs(type: PlanType): string | undefined {
  const { id, type_info: info } = type;
  const changed = castTypes[literalTypes[id] ?? id];
  if (changed !== undefined) return changed;
  const within = id === "STRUCT" ? (info?.child_types ?? []).map(({ second }) => second) : [];
  if (id === "LIST" || id === "MAP") within.push(childOf(type));
  if (!within.some((one) => carriedAs(one) !== undefined)) return undefined;
  // Rare, and exact as text would not be for every value: left to a single task.
  throw new Unsplittable(`the type ${typeSql(type)} between tasks`);
}

export const carry = (expression: string, type: PlanType): string => {
  const as = carriedAs(type);
  return as === undefined ? expression : `cast(${expression} as ${as})`;
};

export const uncarry = (expression: string, type: PlanType): string =>
  carriedAs(type) === undefined ? expression : `cast(${expression} as ${typeSql(type)})`;
