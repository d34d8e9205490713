/** The fields of a message as the generated code treats them. */
import protobuf from "protobufjs";
import { camel, type Names } from "./names.ts";
import { fullNameOf, isOptional, oneofOf } from "./schema.ts";
import { wireTypeOf } from "./types.ts";

export type Field = {
  readonly source: protobuf.Field;
  readonly name: string;
  readonly number: number;
  /** Of one value: an element, a map's value. */
  readonly type: string;
  readonly wire: ReturnType<typeof wireTypeOf>;
  readonly shape: "single" | "optional" | "list" | "packed" | "map";
  readonly oneof: string | undefined;
  /** For a message with a bytes field: the field whose size is roughly that of the message. */
  readonly bulk: string | undefined;
};

export function fieldOf(field: protobuf.Field, names: Names): Field {
  field.resolve();
  const wire = wireTypeOf(field);
  const type = wire.kind === "message" ? names.of(resolved(field.resolvedType, field)) : wire.type;
  const isPresenceKnown = isOptional(field) || (wire.kind === "message" && !field.repeated && !field.map);
  const oneof = oneofOf(field);
  return {
    source: field,
    name: camel(field.name),
    number: field.id,
    type,
    wire,
    shape: field.map
      ? "map"
      : field.repeated
        ? wire.kind === "message" || wire.number === 2
          ? "list"
          : "packed"
        : isPresenceKnown
          ? "optional"
          : "single",
    oneof: oneof && camel(oneof.name),
    bulk: bulkOf(field),
  };
}

function bulkOf({ resolvedType }: protobuf.Field): string | undefined {
  if (!(resolvedType instanceof protobuf.Type)) return undefined;
  const bulk = resolvedType.fieldsArray.find((field) => field.type === "bytes" && !field.repeated && !field.partOf);
  return bulk && camel(bulk.name);
}

export function resolved<T>(type: T | null, owner: protobuf.ReflectionObject): T {
  if (!type) throw new Error(`${fullNameOf(owner)}: its type was not found`);
  return type;
}

/** What precedes a field on the wire. */
export const tagOf = (number: number, wireType: number): number => number * 8 + wireType;
