/** Bound expressions of a plan as SQL over columns c0, c1, ... Whatever is not known here is not guessed at. */
import { typeSql } from "./column-types.ts";
import { literal } from "./literals.ts";
import type { PlanExpression, PlanFilter, PlanOrder, PlanType } from "./plan-json.ts";
import { columnName, quoteName, quoteText } from "./quoting.ts";
import { Unsplittable } from "./unsplittable.ts";

/** What a reference to a column of the operators below is called. */
export type Reference = (index: number) => string;

const comparisons: Readonly<Record<string, string>> = {
  COMPARE_EQUAL: "=",
  COMPARE_NOTEQUAL: "<>",
  COMPARE_LESSTHAN: "<",
  COMPARE_GREATERTHAN: ">",
  COMPARE_LESSTHANOREQUALTO: "<=",
  COMPARE_GREATERTHANOREQUALTO: ">=",
  COMPARE_NOT_DISTINCT_FROM: "is not distinct from",
  COMPARE_DISTINCT_FROM: "is distinct from",
};

export function comparison(type: string | undefined): string {
  const sign = comparisons[type ?? ""];
  if (sign === undefined) throw new Unsplittable(`the comparison ${type}`);
  return sign;
}

/** The same in every task only by luck, or with arguments that the plan does not show. */
const refusedFunctions: ReadonlySet<string> = new Set([
  "random",
  "uuid",
  "uuidv4",
  "uuidv7",
  "gen_random_uuid",
  "setseed",
  "nextval",
  "currval",
  "getvariable",
  "current_setting",
  "current_query",
  "current_connection_id",
  "current_query_id",
  "current_transaction_id",
  "txid_current",
  "write_log",
  "struct_insert",
  "struct_update",
  "struct_concat",
  "remap_struct",
  "union_value",
  "union_extract",
  "enum_code",
  "finalize",
  "combine",
  "parse_duckdb_log_message",
  "can_cast_implicitly",
]);

export function expressionSql(e: PlanExpression, reference: Reference = columnName): string {
  const sql = (one: PlanExpression | undefined): string => {
    if (!one) throw new Unsplittable(`${e.expression_class} without what it is made of`);
    return expressionSql(one, reference);
  };
  const all = (list: readonly PlanExpression[] = []): string => list.map(sql).join(", ");
  switch (e.expression_class) {
    case "BOUND_REF":
      return reference(e.index ?? 0);
    case "BOUND_CONSTANT":
      if (!e.value) throw new Unsplittable("a constant without a value");
      return literal(e.value);
    case "BOUND_COMPARISON":
      return `(${sql(e.left)} ${comparison(e.type)} ${sql(e.right)})`;
    case "BOUND_CONJUNCTION":
      return `(${(e.children ?? []).map(sql).join(e.type === "CONJUNCTION_AND" ? " and " : " or ")})`;
    case "BOUND_CASE": {
      const whens = (e.case_checks ?? []).map((c) => `when ${sql(c.when_expr)} then ${sql(c.then_expr)}`);
      return `(case ${whens.join(" ")} else ${sql(e.else_expr)} end)`;
    }
    case "BOUND_CAST":
      return `${e.try_cast ? "try_cast" : "cast"}(${sql(e.child)} as ${typeSql(typeOf(e))})`;
    case "BOUND_BETWEEN": {
      const [from, to] = [e.lower_inclusive ? ">=" : ">", e.upper_inclusive ? "<=" : "<"];
      return `(${sql(e.input)} ${from} ${sql(e.lower)} and ${sql(e.input)} ${to} ${sql(e.upper)})`;
    }
    case "BOUND_OPERATOR":
      return operatorSql(e, sql, all);
    case "BOUND_FUNCTION":
      return functionSql(e, sql);
    default:
      throw new Unsplittable(`the expression ${e.expression_class}`);
  }
}

type Sql = (e: PlanExpression | undefined) => string;

function operatorSql(e: PlanExpression, sql: Sql, all: (list?: readonly PlanExpression[]) => string): string {
  const [first, ...others] = e.children ?? [];
  switch (e.type) {
    case "OPERATOR_NOT":
      return `(not ${sql(first)})`;
    case "OPERATOR_IS_NULL":
      return `(${sql(first)} is null)`;
    case "OPERATOR_IS_NOT_NULL":
      return `(${sql(first)} is not null)`;
    case "COMPARE_IN":
      return `(${sql(first)} in (${all(others)}))`;
    case "COMPARE_NOT_IN":
      return `(${sql(first)} not in (${all(others)}))`;
    case "OPERATOR_COALESCE":
      return `coalesce(${all(e.children)})`;
    case "OPERATOR_TRY":
      return `try(${sql(first)})`;
    default:
      throw new Unsplittable(`the operator ${e.type}`);
  }
}

function functionSql(e: PlanExpression, sql: Sql): string {
  const { name = "", children = [] } = e;
  const given = e.original_arguments;
  if (refusedFunctions.has(name)) throw new Unsplittable(`the function ${name}`);
  if (given && given.length !== children.length) throw new Unsplittable(`the function ${name} with constants`);
  if (name === "struct_pack" || name === "row") {
    const fields = typeOf(e).type_info?.child_types ?? [];
    if (fields.some(({ first }) => !first)) throw new Unsplittable("a row without names");
    return `struct_pack(${children.map((child, i) => `${quoteName(fields[i]?.first ?? "")} := ${sql(child)}`).join(", ")})`;
  }
  const data = e.function_data as { readonly lambda_expr?: unknown } | undefined;
  if (data && "lambda_expr" in data) throw new Unsplittable(`the function ${name} with a lambda`);
  return `${quoteName(name)}(${children.map(sql).join(", ")})`;
}

export function typeOf(e: PlanExpression): PlanType {
  switch (e.expression_class) {
    case "BOUND_COMPARISON":
    case "BOUND_CONJUNCTION":
    case "BOUND_BETWEEN":
      return { id: "BOOLEAN" };
    default: {
      const type = e.return_type ?? e.value?.type;
      if (!type) throw new Unsplittable(`${e.expression_class} without a type`);
      return type;
    }
  }
}

/** A filter that the optimiser has moved into the scan, over the named column. */
export function filterSql(filter: PlanFilter, column: string): string {
  const { filter_type: kind, constant, values = [], child_filters: children = [], expr } = filter;
  switch (kind) {
    case "CONSTANT_COMPARISON":
      if (!constant) throw new Unsplittable("a filter without its constant");
      return `(${column} ${comparison(filter.comparison_type)} ${literal(constant)})`;
    case "IS_NULL":
      return `(${column} is null)`;
    case "IS_NOT_NULL":
      return `(${column} is not null)`;
    case "CONJUNCTION_AND":
      return `(${children.map((one) => filterSql(one, column)).join(" and ")})`;
    case "CONJUNCTION_OR":
      return `(${children.map((one) => filterSql(one, column)).join(" or ")})`;
    case "IN_FILTER":
      return `(${column} in (${values.map(literal).join(", ")}))`;
    // Says nothing that the rest of the plan does not say as well.
    case "OPTIONAL_FILTER":
    case "DYNAMIC_FILTER":
      return "true";
    case "EXPRESSION_FILTER":
      if (!expr) throw new Unsplittable("a filter without its expression");
      return expressionSql(expr, () => column);
    default:
      throw new Unsplittable(`the filter ${kind}`);
  }
}

/** A bare text would be refused there, and a bare number taken for the place of a column. */
export const orderSql = (orders: readonly PlanOrder[], reference?: Reference): string =>
  orders
    .map((one) => {
      const sql = expressionSql(one.expression, reference);
      const isBare = one.expression.expression_class === "BOUND_CONSTANT";
      return `${isBare ? `cast(${sql} as ${typeSql(typeOf(one.expression))})` : sql} ${directionSql(one)}`;
    })
    .join(", ");

export function directionSql({ type, null_order: nulls }: PlanOrder): string {
  const direction = type === "DESCENDING" ? "desc" : "asc";
  if (nulls !== "NULLS FIRST" && nulls !== "NULLS LAST") throw new Unsplittable(`the order of nulls ${nulls}`);
  return `${direction} ${nulls.toLowerCase()}`;
}

/**
 * A text of bytes that compares as the rows are ordered. Short keys of fixed width would be numbers: the empty text at
 * the end makes all of them bytes.
 */
export const sortKeySql = (orders: readonly PlanOrder[]): string =>
  `create_sort_key(${[...orders.map((one) => `${expressionSql(one.expression)}, ${quoteText(directionSql(one))}`), "'', 'asc nulls last'"].join(", ")})`;
