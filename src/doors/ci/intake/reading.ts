/** Reads fields of a document that others wrote: what is missing or of another kind is undefined. Pure. */

export type Fields = Readonly<Record<string, unknown>>;

export function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

/** The value at a path of names. */
export function valueAt(fields: Fields, ...path: readonly string[]): unknown {
  let value: unknown = fields;
  for (const name of path) value = Object.hasOwn(fieldsOf(value), name) ? fieldsOf(value)[name] : undefined;
  return value;
}

const textLengthMax = 1_000;

export function textAt(fields: Fields, ...path: readonly string[]): string | undefined {
  const value = valueAt(fields, ...path);
  return typeof value === "string" && value.length <= textLengthMax ? value : undefined;
}

export function numberAt(fields: Fields, ...path: readonly string[]): number | undefined {
  const value = valueAt(fields, ...path);
  return typeof value === "number" && Number.isSafeInteger(value) ? value : undefined;
}
