/** A zod schema as JSON Schema, in the parts that the reference, `--set` and error messages read. */
import { z } from "zod";

export type JsonSchema = {
  readonly type?: string;
  readonly const?: unknown;
  readonly default?: unknown;
  readonly description?: string;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly oneOf?: readonly JsonSchema[];
  readonly anyOf?: readonly JsonSchema[];
};

export const schemaOf = (schema: z.ZodType): JsonSchema =>
  z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as JsonSchema;

/** A part that is one of several kinds has the settings of all of them. */
export const variantsOf = (place: JsonSchema): readonly JsonSchema[] => [
  place,
  ...(place.oneOf ?? []).flatMap(variantsOf),
  ...(place.anyOf ?? []).flatMap(variantsOf),
];
