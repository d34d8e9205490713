/** DuckDB's optimised logical plan as `json_serialize_plan` writes it: only the parts that are read here. */
import { Unsplittable } from "./unsplittable.ts";

export type PlanType = {
  readonly id: string;
  readonly type_info?: {
    readonly width?: number;
    readonly scale?: number;
    readonly child_type?: PlanType;
    readonly child_types?: readonly { readonly first?: string; readonly second: PlanType }[];
    readonly alias?: string;
  };
};

export type PlanValue = { readonly type: PlanType; readonly is_null?: boolean; readonly value?: unknown };

export type PlanOrder = { readonly type: string; readonly null_order: string; readonly expression: PlanExpression };

export type PlanExpression = {
  readonly expression_class: string;
  readonly type: string;
  readonly index?: number;
  readonly alias?: string;
  readonly return_type?: PlanType;
  readonly value?: PlanValue;
  readonly name?: string;
  readonly children?: readonly PlanExpression[];
  readonly child?: PlanExpression;
  readonly left?: PlanExpression;
  readonly right?: PlanExpression;
  readonly input?: PlanExpression;
  readonly lower?: PlanExpression;
  readonly upper?: PlanExpression;
  readonly lower_inclusive?: boolean;
  readonly upper_inclusive?: boolean;
  readonly case_checks?: readonly { readonly when_expr: PlanExpression; readonly then_expr: PlanExpression }[];
  readonly else_expr?: PlanExpression;
  readonly try_cast?: boolean;
  readonly original_arguments?: readonly PlanType[];
  readonly function_data?: unknown;
  readonly filter?: PlanExpression;
  readonly aggregate_type?: string;
  readonly order_bys?: { readonly orders?: readonly PlanOrder[] };
  readonly partitions?: readonly PlanExpression[];
  readonly orders?: readonly PlanOrder[];
  readonly arg_orders?: readonly PlanOrder[];
  readonly ignore_nulls?: boolean;
  readonly distinct?: boolean;
  readonly start?: string;
  readonly end?: string;
  readonly start_expr?: PlanExpression;
  readonly end_expr?: PlanExpression;
  readonly offset_expr?: PlanExpression;
  readonly default_expr?: PlanExpression;
  readonly filter_expr?: PlanExpression;
  readonly exclude_clause?: string;
};

export type PlanFilter = {
  readonly filter_type: string;
  readonly comparison_type?: string;
  readonly constant?: PlanValue;
  readonly values?: readonly PlanValue[];
  readonly child_filters?: readonly PlanFilter[];
  readonly expr?: PlanExpression;
};

export type PlanCondition = {
  readonly left?: PlanExpression;
  readonly right?: PlanExpression;
  readonly comparison?: string;
};

type LimitValue = { readonly type: string; readonly constant_integer?: number };

/** Every operator has its own fields; those of all are listed in one type and checked where they are used. */
export type PlanNode = {
  readonly type: string;
  readonly children?: readonly PlanNode[];
  readonly expressions?: readonly PlanExpression[];
  readonly table_index?: number;
  readonly names?: readonly string[];
  readonly returned_types?: readonly PlanType[];
  readonly return_types?: readonly PlanType[];
  readonly projection_ids?: readonly number[];
  readonly projection_map?: readonly number[];
  readonly projections?: readonly number[];
  readonly left_projection_map?: readonly number[];
  readonly right_projection_map?: readonly number[];
  readonly column_indexes?: readonly {
    readonly index?: number;
    readonly index_type?: string;
    readonly child_indexes?: readonly unknown[];
  }[];
  readonly table_filters?: { readonly filters?: readonly { readonly key?: number; readonly value: PlanFilter }[] };
  readonly name?: string;
  readonly function_data?: { readonly files?: readonly string[]; readonly table?: string };
  readonly parameters?: readonly unknown[];
  readonly join_type?: string;
  readonly conditions?: readonly PlanCondition[];
  readonly predicate?: unknown;
  readonly condition?: PlanExpression;
  readonly duplicate_eliminated_columns?: readonly PlanExpression[];
  readonly delim_flipped?: boolean;
  readonly groups?: readonly PlanExpression[];
  readonly grouping_sets?: readonly (readonly number[])[];
  readonly grouping_functions?: readonly (readonly number[])[];
  readonly orders?: readonly PlanOrder[];
  readonly order_by?: { readonly orders?: readonly PlanOrder[] };
  readonly limit?: number;
  readonly offset?: number;
  readonly limit_val?: LimitValue;
  readonly offset_val?: LimitValue;
  readonly distinct_type?: string;
  readonly distinct_targets?: readonly PlanExpression[];
  readonly column_count?: number;
  readonly setop_all?: boolean;
  readonly cte_index?: number;
  readonly chunk_types?: readonly PlanType[];
  readonly expr_types?: readonly PlanType[];
  readonly collection?: { readonly types?: readonly PlanType[]; readonly values?: readonly (readonly PlanValue[])[] };
};

type Serialized = {
  readonly error?: boolean;
  readonly error_message?: string;
  readonly plans?: readonly PlanNode[];
};

/** An empty text is a value there, not one that is left out. */
const mayBeEmpty: ReadonlySet<string> = new Set(["value", "separator"]);

/**
 * Numbers beyond what a double holds exactly become bigints, and "not a number" and infinities become strings. Fields
 * with an empty text or list are left out; an element of a list stays, such as the grouping set of all rows.
 */
export function parsePlan(text: string): PlanNode {
  const legal = text.replace(/"value":(-?(?:NaN|nan|Infinity|inf))(?=[,}\]])/g, '"value":"$1"');
  const exact = (key: string, value: unknown, context?: { readonly source?: string }): unknown => {
    if (typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value) && context?.source)
      return asBigInt(context.source, value);
    const isEmpty = value === "" || (Array.isArray(value) && value.length === 0);
    return isEmpty && !mayBeEmpty.has(key) && !/^\d+$/.test(key) ? undefined : value;
  };
  const { error, error_message: why, plans } = JSON.parse(legal, exact) as Serialized;
  const [plan, ...others] = plans ?? [];
  if (error || !plan) throw new Unsplittable(`DuckDB cannot write down its plan: ${why ?? "it has none"}`);
  if (others.length > 0) throw new Unsplittable("it is more than one statement");
  return plan;
}

const asBigInt = (source: string, value: number): bigint | number => (/^-?\d+$/.test(source) ? BigInt(source) : value);
