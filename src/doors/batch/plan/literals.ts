/** Constants of a plan as SQL, exact to the last digit. */
import { typeSql } from "./column-types.ts";
import type { PlanType, PlanValue } from "./plan-json.ts";
import { quoteName, quoteText } from "./quoting.ts";
import { Unsplittable } from "./unsplittable.ts";

export function literal({ type, is_null: isNull, value }: PlanValue): string {
  const as = typeSql(type);
  if (isNull || value === undefined) return `cast(NULL as ${as})`;
  switch (type.id) {
    case "VARCHAR":
    case "STRING_LITERAL":
      return textLiteral(value);
    case "BOOLEAN":
      return value ? "true" : "false";
    case "DATE":
      return `(DATE '1970-01-01' + cast(${integer(value)} as INTEGER))`;
    case "TIMESTAMP":
      return `make_timestamp(cast(${integer(value)} as BIGINT))`;
    case "TIMESTAMP WITH TIME ZONE":
      return `make_timestamptz(cast(${integer(value)} as BIGINT))`;
    case "DECIMAL":
      return `cast('${decimal(value, type)}' as ${as})`;
    case "HUGEINT":
      return `cast('${wide(value)}' as HUGEINT)`;
    case "INTERVAL":
      return interval(value);
    case "FLOAT":
    case "DOUBLE":
      return `cast('${floating(value)}' as ${as})`;
    case "LIST":
      return listLiteral(value, type, as);
    case "STRUCT":
      return structLiteral(value, type, as);
    default:
      return `cast(${integer(value)} as ${as})`;
  }
}

function floating(value: unknown): string {
  if (typeof value === "number") return Object.is(value, -0) ? "-0.0" : String(value);
  if (typeof value === "string" || typeof value === "bigint") return String(value);
  throw new Unsplittable("a floating number of another kind");
}

function textLiteral(value: unknown): string {
  if (typeof value !== "string") throw new Unsplittable("a text that is not UTF-8");
  if (value.includes("\0")) throw new Unsplittable("a text with a zero byte");
  return quoteText(value);
}

function integer(value: unknown): string {
  if (typeof value === "bigint" || (typeof value === "number" && Number.isInteger(value))) return String(value);
  throw new Unsplittable(`a constant of another kind: ${JSON.stringify(value)?.slice(0, 50)}`);
}

type Wide = { readonly upper?: number | bigint; readonly lower?: number | bigint };

function wide(value: unknown): bigint {
  if (typeof value === "number" || typeof value === "bigint") return BigInt(value);
  const { upper = 0, lower = 0 } = value as Wide;
  return (BigInt(upper) << 64n) + BigInt(lower);
}

function decimal(value: unknown, { type_info: info }: PlanType): string {
  const scale = info?.scale ?? 0;
  const number = wide(value);
  const digits = String(number < 0n ? -number : number).padStart(scale + 1, "0");
  const whole = digits.slice(0, digits.length - scale);
  return `${number < 0n ? "-" : ""}${whole}${scale > 0 ? `.${digits.slice(-scale)}` : ""}`;
}

function interval(value: unknown): string {
  const { months = 0, days = 0, micros = 0 } = value as Readonly<Record<string, number | bigint>>;
  return `(to_months(cast(${months} as INTEGER)) + to_days(cast(${days} as INTEGER)) + to_microseconds(cast(${micros} as BIGINT)))`;
}

type Children = { readonly children?: readonly PlanValue[] };

function listLiteral(value: unknown, _type: PlanType, as: string): string {
  const children = childrenOf(value);
  return `cast([${children.map(literal).join(", ")}] as ${as})`;
}

function structLiteral(value: unknown, { type_info: info }: PlanType, as: string): string {
  const children = childrenOf(value);
  const names = (info?.child_types ?? []).map(({ first = "" }) => first);
  return `cast({${children.map((child, i) => `${quoteName(names[i] ?? "")}: ${literal(child)}`).join(", ")}} as ${as})`;
}

function childrenOf(value: unknown): readonly PlanValue[] {
  const children = Array.isArray(value) ? (value as PlanValue[]) : (value as Children).children;
  if (!children?.every((child) => typeof child === "object" && "type" in child))
    throw new Unsplittable("a nested constant");
  return children;
}
