/** Types as DuckDB prints them in DESCRIBE, as far as it matters how they are carried. */
import type { PlanType } from "./plan-json.ts";

/** Nested types are taken as they are: what is written to a single result keeps whatever Parquet makes of them. */
export function typeNamed(text: string): PlanType {
  const decimal = /^DECIMAL\((\d+),\s*(\d+)\)$/.exec(text);
  if (decimal) return { id: "DECIMAL", type_info: { width: Number(decimal[1]), scale: Number(decimal[2]) } };
  return { id: text };
}
