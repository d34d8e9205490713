/** What may stand at a place of a workflow file, as data. */
import type { Availability } from "#doors/ci/workflow/expression/availability.ts";

export type Definition = (
  | { readonly kind: "null" | "boolean" | "number" | "any" }
  | { readonly kind: "string"; readonly isNonEmpty?: boolean; readonly among?: readonly string[] }
  | { readonly kind: "sequence"; readonly item: Definition }
  | MappingDefinition
  | { readonly kind: "one-of"; readonly of: readonly Definition[] }
) & {
  /** Where expressions are allowed, and what they may use; below a place without its own, the one above counts. */
  readonly available?: Availability;
};

export type MappingDefinition = {
  readonly kind: "mapping";
  readonly properties: Readonly<Record<string, Property>>;
  /** Further keys, with their values. */
  readonly rest?: { readonly key: Definition; readonly value: Definition };
  readonly available?: Availability;
};

export type Property = { readonly value: Definition; readonly isRequired?: boolean };

export const nothing: Definition = { kind: "null" };
export const boolean: Definition = { kind: "boolean" };
export const number: Definition = { kind: "number" };
export const string: Definition = { kind: "string" };
export const nonEmpty: Definition = { kind: "string", isNonEmpty: true };
export const any: Definition = { kind: "any" };

export const among = (...values: readonly string[]): Definition => ({ kind: "string", among: values });
export const sequence = (item: Definition): Definition => ({ kind: "sequence", item });
export const oneOf = (...of: readonly Definition[]): Definition => ({ kind: "one-of", of });
export const nonEmptyList: Definition = sequence(nonEmpty);
export const oneOrMore: Definition = oneOf(nonEmpty, nonEmptyList);

export const within = (available: Availability, definition: Definition): Definition => ({ ...definition, available });

/** Keys that end in `!` are required. */
export function mapping(properties: Readonly<Record<string, Definition>>): Definition {
  const entries = Object.entries(properties).map(([name, value]): [string, Property] =>
    name.endsWith("!") ? [name.slice(0, -1), { value, isRequired: true }] : [name, { value }],
  );
  return { kind: "mapping", properties: Object.fromEntries(entries) };
}

export const mapOf = (value: Definition, properties: Readonly<Record<string, Definition>> = {}): Definition => ({
  ...(mapping(properties) as MappingDefinition),
  rest: { key: nonEmpty, value },
});
