/** The .proto files below proto/, parsed by protobufjs, in the order in which they are written. */
import { globSync, readFileSync } from "node:fs";
import { join, sep } from "node:path";
import protobuf from "protobufjs";

export type ProtoFile = {
  /** Below proto/, as imports name it. */
  readonly path: string;
  readonly package: string;
  readonly imports: readonly string[];
  /** In the order of the file; nested declarations follow their parent. */
  readonly messages: readonly protobuf.Type[];
  readonly enums: readonly protobuf.Enum[];
  readonly services: readonly protobuf.Service[];
};

export function readProtoFiles(folder: string): readonly ProtoFile[] {
  const root = new protobuf.Root();
  const paths = globSync("**/*.proto", { cwd: folder })
    .map((path) => path.split(sep).join("/"))
    .toSorted();
  const parsed = paths.map((path) => {
    Object.assign(protobuf.parse, { filename: path }); // protobufjs takes `filename` from here
    const source = readFileSync(join(folder, path), "utf8");
    if (!/^syntax = "proto3";$/m.test(source)) throw new Error(`${path}: write syntax = "proto3"`);
    const result = protobuf.parse(source, root, { keepCase: true, alternateCommentMode: true });
    return { path, package: result.package ?? "", imports: result.imports ?? [] };
  });
  root.resolveAll();
  return parsed.map((file) => {
    const scope = root.lookup(file.package);
    if (!(scope instanceof protobuf.Namespace)) throw new Error(`${file.path}: no package ${file.package}`);
    const own = scope.nestedArray.filter((one) => one.filename === file.path);
    const all = own.flatMap((one) => [one, ...within(one)]);
    return {
      ...file,
      messages: all.filter((one) => one instanceof protobuf.Type),
      enums: all.filter((one) => one instanceof protobuf.Enum),
      services: all.filter((one) => one instanceof protobuf.Service),
    };
  });
}

function within(one: protobuf.ReflectionObject): readonly protobuf.ReflectionObject[] {
  if (!(one instanceof protobuf.Type)) return [];
  return one.nestedArray.flatMap((inner) => [inner, ...within(inner)]);
}

/** With its package and without the leading dot. */
export const fullNameOf = (one: protobuf.ReflectionObject): string => one.fullName.replace(/^\./, "");

/** The oneof that a field is declared in; the synthetic one of `optional` does not count. */
export const oneofOf = (field: protobuf.Field): protobuf.OneOf | undefined =>
  field.partOf && !isOptional(field) ? field.partOf : undefined;

export const isOptional = (field: protobuf.Field): boolean => field.getOption("proto3_optional") === true;
