/**
 * Writes one TypeScript module for one .proto file: a type, an encoder and a decoder for every message, an object of
 * numbers for every enum, a table of methods for every service.
 */
import type protobuf from "protobufjs";
import { readLines } from "./decode.ts";
import { writeLines } from "./encode.ts";
import { fieldOf, resolved, type Field } from "./fields.ts";
import { Names } from "./names.ts";
import { fullNameOf, oneofOf, type ProtoFile } from "./schema.ts";

export function moduleOf(file: ProtoFile): string {
  const names = new Names(file);
  const body = [
    ...file.enums.map((one) => enumCode(one, names)),
    ...file.messages.map((one) => messageCode(one, names)),
    ...file.services.map((one) => serviceCode(one, names)),
  ].join("\n");
  const uses = (word: string): boolean => new RegExp(`\\b${word}\\b`).test(body);
  const kinds = ["Message", "Service"].filter(uses).join(", ");
  return [
    `// Generated from proto/${file.path}: change that and run \`npm run generate\`.`,
    ...(kinds === "" ? [] : [`import type { ${kinds} } from "#wire/message.ts";`]),
    ...(uses("noBytes") ? ['import { noBytes } from "#wire/reader.ts";'] : []),
    ...(uses("sortedEntries") ? ['import { sortedEntries } from "#wire/writer.ts";'] : []),
    ...names.imports(),
    "",
    body,
  ].join("\n");
}

function comment(text: string | null, indent = ""): readonly string[] {
  const lines = (text ?? "").split("\n").filter((line, i, all) => line !== "" || (i > 0 && i < all.length - 1));
  if (lines.length === 0) return [];
  if (lines.length === 1) return [`${indent}/** ${lines[0]} */`];
  return [`${indent}/**`, ...lines.map((line) => `${indent} * ${line}`.trimEnd()), `${indent} */`];
}

function enumCode(type: protobuf.Enum, names: Names): string {
  const values = Object.entries(type.values).flatMap(([name, value]) => [
    ...comment(type.comments[name] ?? null, "  "),
    `  ${name}: ${value},`,
  ]);
  return [...comment(type.comment), `export const ${names.of(type)} = {`, ...values, "} as const;", ""].join("\n");
}

function serviceCode(service: protobuf.Service, names: Names): string {
  const methods = service.methodsArray.flatMap((method) => {
    const { requestStream, responseStream } = method;
    const streams = requestStream ? (responseStream ? "both" : "client") : responseStream ? "server" : "none";
    return [
      ...comment(method.comment, "    "),
      `    ${method.name.charAt(0).toLowerCase()}${method.name.slice(1)}: {`,
      `      name: "${method.name}",`,
      `      path: "/${fullNameOf(service)}/${method.name}",`,
      `      request: ${names.of(resolved(method.resolvedRequestType, method))},`,
      `      response: ${names.of(resolved(method.resolvedResponseType, method))},`,
      `      streams: "${streams}",`,
      "    },",
    ];
  });
  return [
    ...comment(service.comment),
    `export const ${names.of(service)} = {`,
    `  typeName: "${fullNameOf(service)}",`,
    "  methods: {",
    ...methods,
    "  },",
    "} as const satisfies Service;",
    "",
  ].join("\n");
}

function messageCode(type: protobuf.Type, names: Names): string {
  const name = names.of(type);
  const fields = type.fieldsArray.toSorted((one, other) => one.id - other.id).map((field) => fieldOf(field, names));
  return [
    ...comment(type.comment),
    ...(fields.length === 0
      ? [`export type ${name} = Readonly<Record<never, never>>;`]
      : [`export type ${name} = {`, ...typeLines(fields), "};"]),
    "",
    `export const ${name}: Message<${name}> = {`,
    `  typeName: "${fullNameOf(type)}",`,
    ...writeLines(fields),
    ...readLines(fields),
    "};",
    "",
  ].join("\n");
}

function typeLines(fields: readonly Field[]): readonly string[] {
  const done = new Set<string>();
  return fields.flatMap((field) => {
    const { source, name, type, shape, oneof } = field;
    if (oneof !== undefined) {
      if (done.has(oneof)) return [];
      done.add(oneof);
      const members = fields.filter((other) => other.oneof === oneof);
      return [
        ...comment(oneofOf(source)?.comment ?? null, "  "),
        `  readonly ${oneof}?:`,
        ...members.flatMap((member) => [
          ...comment(member.source.comment, "    "),
          `    | { readonly kind: "${member.name}"; readonly value: ${member.type} }`,
        ]),
        "    | undefined;",
      ];
    }
    const line = {
      single: `readonly ${name}: ${type};`,
      optional: `readonly ${name}?: ${type} | undefined;`,
      list: `readonly ${name}: readonly ${type}[];`,
      packed: `readonly ${name}: readonly ${type}[];`,
      map: `readonly ${name}: ReadonlyMap<string, ${type}>;`,
    }[shape];
    return [...comment(source.comment, "  "), `  ${line}`];
  });
}
