/**
 * Which partition a row goes to, written down byte for byte, so that every engine and every version agrees.
 *
 *   h(null)    = 0
 *   h(integer) = (low * 2654435769) xor (high * 2246822519), where low and high are the halves of the value as 64 bits;
 *                booleans are 0 and 1, dates count days and timestamps microseconds since 1970-01-01 (UTC)
 *   h(other)   = the lower 64 bits of the MD5 of the value's text, as DuckDB's `md5_number_lower` reads them; of
 *                doubles -0.0 is 0.0, and decimals have as many digits after the point as their type
 *   h(a, b...) = fold: (h * 31 modulo 2^32) xor the next one's lower 32 bits, from 0
 *   partition  = (h xor (h >> 15)) modulo the number of partitions, h cut to 32 bits
 *
 * Integers of all widths hash alike, and so do equal dates and timestamps of one type; values of different families
 * never have to meet, because the planner casts both sides of a join to one type.
 */
import type { PlanType } from "./plan-json.ts";
import { typeSql } from "./column-types.ts";

export type PartitionKey = { readonly sql: string; readonly type: PlanType };

const integers: ReadonlySet<string> = new Set([
  "TINYINT",
  "SMALLINT",
  "INTEGER",
  "BIGINT",
  "UTINYINT",
  "USMALLINT",
  "UINTEGER",
  "INTEGER_LITERAL",
]);

/** Values of one family that are equal are in one partition. */
export function familyOf(type: PlanType): string {
  if (integers.has(type.id)) return "integer";
  if (type.id === "DECIMAL") return `decimal ${type.type_info?.scale ?? 0}`;
  return typeSql(type);
}

/** An expression for the number of the partition, from 0. */
export function partitionSql(keys: readonly PartitionKey[], partitions: number): string {
  if (partitions <= 1 || keys.length === 0) return "cast(0 as UINTEGER)";
  const mask = "cast(4294967295 as UBIGINT)";
  const folded = keys.reduce((h, key, i) => {
    const one = `(${hashSql(key)} & ${mask})`;
    return i === 0 ? one : `xor((${h} * cast(31 as UBIGINT)) & ${mask}, ${one})`;
  }, "");
  return `cast(xor(${folded}, ${folded} >> 15) % ${partitions} as UINTEGER)`;
}

function hashSql({ sql, type }: PartitionKey): string {
  const bits = bitsSql(sql, type);
  if (bits === undefined) return `coalesce(md5_number_lower(${textSql(sql, type)}), 0)`;
  const low = `cast(${bits} & 4294967295 as UBIGINT)`;
  const high = `cast((${bits} >> 32) & 4294967295 as UBIGINT)`;
  return `coalesce(xor(${low} * cast(2654435769 as UBIGINT), ${high} * cast(2246822519 as UBIGINT)), 0)`;
}

function bitsSql(sql: string, { id }: PlanType): string | undefined {
  if (integers.has(id) || id === "BOOLEAN") return `cast(${sql} as BIGINT)`;
  if (id === "DATE") return `cast(${sql} - DATE '1970-01-01' as BIGINT)`;
  if (id === "TIMESTAMP" || id === "TIMESTAMP WITH TIME ZONE") return `epoch_us(${sql})`;
  return undefined;
}

function textSql(sql: string, { id }: PlanType): string {
  if (id === "VARCHAR") return sql;
  if (id === "BLOB") return `hex(${sql})`;
  if (id === "DOUBLE" || id === "FLOAT")
    return `cast(case when ${sql} = 0 then cast(0 as DOUBLE) else cast(${sql} as DOUBLE) end as VARCHAR)`;
  return `cast(${sql} as VARCHAR)`;
}
