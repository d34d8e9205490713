/** The .proto files as FileDescriptorProtos: for gRPC reflection. */
import protobuf from "protobufjs";
import { camel } from "./names.ts";
import { fullNameOf, isOptional, oneofOf, type ProtoFile } from "./schema.ts";

export const descriptorsPath = "src/wire/generated/descriptors.ts";

/** The descriptor of descriptors is not served: every tool has the original. */
const notServed = "google/protobuf/descriptor.proto";

export function descriptorsModule(files: readonly ProtoFile[]): string {
  const described = files.find(({ path }) => path === notServed);
  const type = described?.messages.find(({ name }) => name === "FileDescriptorProto");
  if (!type) throw new Error(`proto/${notServed} has no FileDescriptorProto`);
  const lines = inOrder(files.filter(({ path }) => path !== notServed)).map((file) => {
    const bytes = type.encode(type.fromObject(fileOf(file))).finish();
    return `  "${file.path}": "${Buffer.from(bytes).toString("base64")}",`;
  });
  return [
    "// Generated from proto/: change that and run `npm run generate`.",
    "",
    "/** Each file's FileDescriptorProto in base64, by its path, after those that it imports. */",
    "export const descriptors: Readonly<Record<string, string>> = {",
    ...lines,
    "};",
    "",
  ].join("\n");
}

/** Every file after those that it imports. */
function inOrder(files: readonly ProtoFile[]): readonly ProtoFile[] {
  const placed = new Set<ProtoFile>();
  const place = (file: ProtoFile): void => {
    if (placed.has(file)) return;
    for (const path of file.imports) {
      const imported = files.find((other) => other.path === path);
      if (!imported) throw new Error(`${file.path}: imports ${path}, which is not below proto/`);
      place(imported);
    }
    placed.add(file);
  };
  for (const file of files) place(file);
  return [...placed];
}

const fileOf = (file: ProtoFile): object => ({
  name: file.path,
  package: file.package,
  dependency: [...file.imports],
  message_type: file.messages.filter(({ parent }) => !(parent instanceof protobuf.Type)).map(messageOf),
  enum_type: file.enums.filter(({ parent }) => !(parent instanceof protobuf.Type)).map(enumOf),
  service: file.services.map(serviceOf),
  syntax: "proto3",
});

function messageOf(type: protobuf.Type): object {
  const fields = Object.values(type.fields);
  const oneofs = type.oneofsArray.filter((oneof) => oneof.fieldsArray.every((field) => oneofOf(field) === oneof));
  const optionals = fields.filter(isOptional);
  const maps = fields.filter((field) => field instanceof protobuf.MapField);
  const oneofIndex = (field: protobuf.Field): object => {
    const oneof = oneofOf(field);
    if (oneof) return { oneof_index: oneofs.indexOf(oneof) };
    return isOptional(field) ? { oneof_index: oneofs.length + optionals.indexOf(field), proto3_optional: true } : {};
  };
  return {
    name: type.name,
    field: fields.map((field) => ({ ...fieldOf(field), ...oneofIndex(field) })),
    nested_type: [
      ...type.nestedArray.filter((inner) => inner instanceof protobuf.Type).map(messageOf),
      ...maps.map(entryOf),
    ],
    enum_type: type.nestedArray.filter((inner) => inner instanceof protobuf.Enum).map(enumOf),
    oneof_decl: [...oneofs.map(({ name }) => ({ name })), ...optionals.map(({ name }) => ({ name: `_${name}` }))],
  };
}

const labels = { one: 1, many: 3 } as const;
const types: Readonly<Record<string, number>> = {
  double: 1,
  int64: 3,
  uint64: 4,
  int32: 5,
  bool: 8,
  string: 9,
  message: 11,
  bytes: 12,
  uint32: 13,
  enum: 14,
};

function fieldOf(field: protobuf.Field): object {
  const label = field.repeated || field.map ? labels.many : labels.one;
  const about = { name: field.name, number: field.id, label, json_name: camel(field.name) };
  if (field instanceof protobuf.MapField)
    return { ...about, type: types["message"], type_name: `${field.parent?.fullName}.${entryName(field)}` };
  return { ...about, ...typeOf(field) };
}

function typeOf(field: Pick<protobuf.Field, "type" | "resolvedType">): object {
  const { resolvedType } = field;
  if (!resolvedType) return { type: types[field.type] };
  return { type: types[resolvedType instanceof protobuf.Enum ? "enum" : "message"], type_name: resolvedType.fullName };
}

const entryName = ({ name }: { readonly name: string }): string =>
  `${name.replace(/(^|_)([a-z])/g, (_, _bar, letter: string) => letter.toUpperCase())}Entry`;

const entryOf = (field: protobuf.MapField): object => ({
  name: entryName(field),
  field: [
    { name: "key", number: 1, label: labels.one, type: types[field.keyType], json_name: "key" },
    { name: "value", number: 2, label: labels.one, ...typeOf(field), json_name: "value" },
  ],
  options: { map_entry: true },
});

const enumOf = (type: protobuf.Enum): object => ({
  name: type.name,
  value: Object.entries(type.values).map(([name, number]) => ({ name, number })),
});

const serviceOf = (service: protobuf.Service): object => ({
  name: service.name,
  method: service.methodsArray.map((method) => ({
    name: method.name,
    input_type: `.${fullNameOf(method.resolvedRequestType ?? method)}`,
    output_type: `.${fullNameOf(method.resolvedResponseType ?? method)}`,
    ...(method.requestStream ? { client_streaming: true } : {}),
    ...(method.responseStream ? { server_streaming: true } : {}),
  })),
});
