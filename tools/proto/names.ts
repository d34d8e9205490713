/** Names in the generated code. */
import protobuf from "protobufjs";
import { fullNameOf, type ProtoFile } from "./schema.ts";

export const modulePathOf = (protoPath: string): string => `src/wire/generated/${protoPath.replace(/\.proto$/, ".ts")}`;

/** The names of types in one module, and which of them have to be imported. */
export class Names {
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

export const camel = (name: string): string =>
  name.replace(/_+([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
export const pascal = (name: string): string => camel(`_${name}`);
