/**
 * Writes one TypeScript module for one .proto file: a type and its encoder and decoder for every message, an object of
 * numbers for every enum, a table of methods for every service.
 */
import protobuf from "protobufjs";
import { fullNameOf, isOptional, oneofOf, type ProtoFile } from "./proto-schema.ts";
import { wireTypeOf } from "./proto-types.ts";

export const modulePathOf = (protoPath: string): string => `src/wire/generated/${protoPath.replace(/\.proto$/, ".ts")}`;

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

/** What types are called in one module, and which have to be imported for it. */
class Names {
  readonly #file: ProtoFile;
  readonly #imported = new Map<string, { readonly from: string; readonly name: string; readonly as: string }>();
  readonly #taken: Set<string>;

  constructor(file: ProtoFile) {
    this.#file = file;
    const own = [...file.messages, ...file.enums, ...file.services].map(localName);
    this.#taken = new Set([...own, "Message", "Service"]);
  }

  of(type: protobuf.ReflectionObject): string {
    if (type.filename === this.#file.path) return localName(type);
    const known = this.#imported.get(type.fullName);
    if (known) return known.as;
    const from = `#${modulePathOf(type.filename ?? "").slice("src/".length)}`;
    const name = localName(type);
    const as = this.#taken.has(name) ? pascal(fullNameOf(type).replaceAll(".", "_")) : name;
    this.#taken.add(as);
    this.#imported.set(type.fullName, { from, name, as });
    return as;
  }

  imports(): readonly string[] {
    return [...this.#imported.values()]
      .toSorted((one, other) => (`${one.from} ${one.name}` < `${other.from} ${other.name}` ? -1 : 1))
      .map(({ from, name, as }) => `import { ${name === as ? name : `${name} as ${as}`} } from "${from}";`);
  }
}

/** `Outer_Inner` for a type within another. */
function localName(type: protobuf.ReflectionObject): string {
  const { parent } = type;
  return parent instanceof protobuf.Type ? `${localName(parent)}_${type.name}` : type.name;
}

const camel = (name: string): string => name.replace(/_+([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
const pascal = (name: string): string => camel(`_${name}`);

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

type Field = {
  readonly source: protobuf.Field;
  readonly name: string;
  readonly number: number;
  /** Of one value: an element, a map's value. */
  readonly type: string;
  readonly wire: ReturnType<typeof wireTypeOf>;
  readonly shape: "single" | "optional" | "list" | "packed" | "map";
  readonly oneof: string | undefined;
};

function fieldOf(field: protobuf.Field, names: Names): Field {
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
  };
}

function resolved<T>(type: T | null, owner: protobuf.ReflectionObject): T {
  if (!type) throw new Error(`${fullNameOf(owner)}: its type was not found`);
  return type;
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

// Encoding

function writeLines(fields: readonly Field[]): readonly string[] {
  if (fields.length === 0) return ["  write() {},"];
  return ["  write(message, to) {", ...runs(fields), "  },"];
}

/** Members of a oneof that follow each other become one switch. */
function runs(fields: readonly Field[]): readonly string[] {
  const lines: string[] = [];
  for (let i = 0; i < fields.length;) {
    const field = fields[i] as Field;
    if (field.oneof === undefined) {
      lines.push(...writeField(field));
      i += 1;
      continue;
    }
    const length = fields.slice(i).findIndex((other) => other.oneof !== field.oneof);
    const members = fields.slice(i, length === -1 ? undefined : i + length);
    i += members.length;
    lines.push(
      `    switch (message.${field.oneof}?.kind) {`,
      ...members.flatMap((member) => [
        `      case "${member.name}": {`,
        ...writeValue(member, `message.${field.oneof}.value`).map((line) => `        ${line}`),
        "        break;",
        "      }",
      ]),
      "    }",
    );
  }
  return lines;
}

function writeField(field: Field): readonly string[] {
  const value = `message.${field.name}`;
  const indented = (lines: readonly string[], by: string): readonly string[] => lines.map((line) => `${by}${line}`);
  switch (field.shape) {
    case "single":
      return [`    if (${isSet(field, value)}) {`, ...indented(writeValue(field, value), "      "), "    }"];
    case "optional":
      return [`    if (${value} !== undefined) {`, ...indented(writeValue(field, value), "      "), "    }"];
    case "list":
      return [`    for (const one of ${value}) {`, ...indented(writeValue(field, "one"), "      "), "    }"];
    case "packed":
      return [
        `    if (${value}.length > 0) {`,
        `      const start = to.open(${tagOf(field.number, 2)});`,
        `      for (const one of ${value}) to.plain${pascal(field.wire.method)}(one);`,
        "      to.close(start);",
        "    }",
      ];
    case "map":
      return [
        `    if (${value}.size > 0) {`,
        `      for (const [key, one] of sortedEntries(${value})) {`,
        `        const entry = to.open(${tagOf(field.number, 2)});`,
        "        to.string(10, key);",
        ...indented(writeValue({ ...field, number: 2 }, "one"), "        "),
        "        to.close(entry);",
        "      }",
        "    }",
      ];
  }
}

function writeValue({ number, wire, type }: Field, value: string): readonly string[] {
  const tag = tagOf(number, wire.number);
  if (wire.kind !== "message") return [`to.${wire.method}(${tag}, ${value});`];
  return [`const start = to.open(${tag});`, `${type}.write(${value}, to);`, "to.close(start);"];
}

function isSet({ wire }: Field, value: string): string {
  if (wire.method === "data") return `${value}.length > 0`;
  if (wire.method === "double") return `!Object.is(${value}, 0)`;
  return wire.method === "bool" ? value : `${value} !== ${wire.empty}`;
}

const tagOf = (number: number, wireType: number): number => number * 8 + wireType;

// Decoding

function readLines(fields: readonly Field[]): readonly string[] {
  const results = [...new Set(fields.map((field) => field.oneof ?? field.name))];
  return [
    `  read(from, end${fields.length === 0 ? "" : ", before"}) {`,
    ...declarations(fields),
    "    while (from.pos < end) {",
    "      const tag = from.tag();",
    ...(fields.length === 0
      ? ["      from.skip(tag);"]
      : [
          "      switch (tag) {",
          ...fields.flatMap(readCases),
          "        default:",
          "          from.skip(tag);",
          "      }",
        ]),
    "    }",
    `    return {${results.length === 0 ? "" : ` ${results.map(property).join(", ")} `}};`,
    "  },",
  ];
}

/** Local variables must not be called like words of the language or the other variables of a decoder. */
const reserved = new Set(
  "from end before tag to message stop inner package default function options import export public case switch new".split(
    " ",
  ),
);
const local = (name: string): string => (reserved.has(name) ? `${name}_` : name);
const property = (name: string): string => (local(name) === name ? name : `${name}: ${local(name)}`);

function declarations(fields: readonly Field[]): readonly string[] {
  const done = new Set<string>();
  return fields.flatMap(({ name, oneof, shape, type, wire }) => {
    const key = oneof ?? name;
    if (done.has(key)) return [];
    done.add(key);
    const variable = local(key);
    if (oneof !== undefined || shape === "optional") return [`    let ${variable} = before?.${key};`];
    if (shape === "single") return [`    let ${variable} = before === undefined ? ${wire.empty} : before.${key};`];
    const [made, kept] = shape === "map" ? [`new Map<string, ${type}>()`, `Map<string, ${type}>`] : ["[]", `${type}[]`];
    return [`    const ${variable}: ${kept} = before === undefined ? ${made} : (before.${key} as ${kept});`];
  });
}

function readCases(field: Field): readonly string[] {
  const { number, wire, shape, oneof, name, type } = field;
  const variable = local(oneof ?? name);
  const opening = (tag: number): string => `        case ${tag}: {`;
  const closing = ["          break;", "        }"];
  const inMessage = (before: string, use: (value: string) => string): readonly string[] => [
    "          const stop = from.enter();",
    `          ${use(`${type}.read(from, stop${before === "" ? "" : `, ${before}`})`)};`,
    "          from.leave(stop);",
  ];
  if (shape === "map") return [opening(tagOf(number, 2)), ...mapEntry(field, variable), ...closing];
  if (shape === "packed")
    return [
      opening(tagOf(number, 2)),
      "          const stop = from.enter();",
      "          while (from.pos < stop) {",
      "            from.count();",
      `            ${variable}.push(from.${wire.method}());`,
      "          }",
      "          from.leave(stop);",
      ...closing,
      opening(tagOf(number, wire.number)),
      "          from.count();",
      `          ${variable}.push(from.${wire.method}());`,
      ...closing,
    ];
  const isMessage = wire.kind === "message";
  const lines =
    oneof !== undefined
      ? isMessage
        ? inMessage(
            `${variable}?.kind === "${name}" ? ${variable}.value : undefined`,
            (value) => `${variable} = { kind: "${name}", value: ${value} }`,
          )
        : [`          ${variable} = { kind: "${name}", value: from.${wire.method}() };`]
      : shape === "list"
        ? isMessage
          ? inMessage("", (value) => `${variable}.push(${value})`)
          : ["          from.count();", `          ${variable}.push(from.${wire.method}());`]
        : isMessage
          ? inMessage(variable, (value) => `${variable} = ${value}`)
          : [`          ${variable} = from.${wire.method}();`];
  return [opening(tagOf(number, wire.number)), ...lines, ...closing];
}

function mapEntry({ wire, type }: Field, variable: string): readonly string[] {
  const isMessage = wire.kind === "message";
  const nothing = isMessage ? "undefined" : wire.empty;
  return [
    "          const stop = from.enter();",
    '          let key = "";',
    `          let value${isMessage ? `: ${type} | undefined` : ""} = ${nothing};`,
    "          while (from.pos < stop) {",
    "            const inner = from.tag();",
    "            if (inner === 10) key = from.string();",
    ...(isMessage
      ? [
          `            else if (inner === ${tagOf(2, 2)}) {`,
          "              const valueStop = from.enter();",
          `              value = ${type}.read(from, valueStop, value);`,
          "              from.leave(valueStop);",
          "            } else from.skip(inner);",
        ]
      : [
          `            else if (inner === ${tagOf(2, wire.number)}) value = from.${wire.method}();`,
          "            else from.skip(inner);",
        ]),
    "          }",
    "          from.leave(stop);",
    `          ${variable}.set(key, value${isMessage ? ` ?? ${type}.read(from, from.pos)` : ""});`,
  ];
}
