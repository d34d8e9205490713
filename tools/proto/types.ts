/** The TypeScript type and the wire format of each type of field. */
import protobuf from "protobufjs";

export type WireType =
  | {
      readonly kind: "scalar";
      /** In TypeScript. */
      readonly type: string;
      /** The method of Reader and Writer. */
      readonly method: string;
      /** The value of an absent field. */
      readonly empty: string;
      readonly number: 0 | 1 | 2 | 5;
    }
  | { readonly kind: "message"; readonly method: ""; readonly empty: "undefined"; readonly number: 2 };

const scalar = (type: string, method: string, empty: string, number: 0 | 1 | 2): WireType => ({
  kind: "scalar",
  type,
  method,
  empty,
  number,
});

// Others can be added here and to Reader and Writer when one of our protocols has them.
const scalars: Readonly<Record<string, WireType>> = {
  string: scalar("string", "string", '""', 2),
  bytes: scalar("Uint8Array", "data", "noBytes", 2),
  bool: scalar("boolean", "bool", "false", 0),
  int32: scalar("number", "int32", "0", 0),
  uint32: scalar("number", "uint32", "0", 0),
  int64: scalar("number", "int64", "0", 0),
  uint64: scalar("number", "uint64", "0", 0),
  double: scalar("number", "double", "0", 1),
};

export function wireTypeOf(field: protobuf.Field): WireType {
  if (field instanceof protobuf.MapField && field.keyType !== "string")
    throw new Error(`${field.fullName}: only text may be a map's key`);
  if (field.resolvedType instanceof protobuf.Type)
    return { kind: "message", method: "", empty: "undefined", number: 2 };
  const type = field.resolvedType instanceof protobuf.Enum ? "int32" : field.type;
  const found = scalars[type];
  if (!found) throw new Error(`${field.fullName}: fields of type ${field.type} are not supported yet`);
  return found;
}
