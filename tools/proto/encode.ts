/** The body of a generated `write`: fields in the order of their numbers, defaults left out. */
import { tagOf, type Field } from "./fields.ts";
import { pascal } from "./names.ts";

export function writeLines(fields: readonly Field[]): readonly string[] {
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

function writeValue({ number, wire, type, bulk }: Field, value: string): readonly string[] {
  const tag = tagOf(number, wire.number);
  if (wire.kind !== "message") return [`to.${wire.method}(${tag}, ${value});`];
  const hint = bulk === undefined ? "" : `, ${value}.${bulk}.length`;
  return [`const start = to.open(${tag}${hint});`, `${type}.write(${value}, to);`, `to.close(start${hint});`];
}

function isSet({ wire }: Field, value: string): string {
  if (wire.method === "data") return `${value}.length > 0`;
  if (wire.method === "double") return `!Object.is(${value}, 0)`;
  return wire.method === "bool" ? value : `${value} !== ${wire.empty}`;
}
