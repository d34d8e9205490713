/** The body of a generated `read`: a loop over the incoming fields, into local variables. */
import { tagOf, type Field } from "./fields.ts";

export function readLines(fields: readonly Field[]): readonly string[] {
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

/** Local variables must not have the names of keywords or of the other variables of a decoder. */
const reserved = new Set(
  `from end before tag stop inner package default function import export public case switch new enum class return
  static private protected interface arguments eval`.split(/\s+/),
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
