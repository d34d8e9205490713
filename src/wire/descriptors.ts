/**
 * What the .proto files declare, for servers that describe themselves: reflection, and FileDescriptorSets for tools.
 */
import { descriptors } from "./generated/descriptors.ts";
import {
  FileDescriptorProto,
  FileDescriptorSet,
  type DescriptorProto,
} from "./generated/google/protobuf/descriptor.ts";
import { decode, encode } from "./message.ts";

export type DescribedFile = {
  /** The path by which imports name it. */
  readonly path: string;
  /** A google.protobuf.FileDescriptorProto. */
  readonly bytes: Uint8Array;
  readonly imports: readonly string[];
  /** The full names of its services. */
  readonly services: readonly string[];
};

type Index = {
  readonly files: ReadonlyMap<string, DescribedFile>;
  /** The file that declares a message, field, oneof, enum, value, service or method, by its full name. */
  readonly bySymbol: ReadonlyMap<string, DescribedFile>;
};

let index: Index | undefined;

/** Each file after those that it imports. Built on first use: few programs need it. */
export const describedFiles = (): readonly DescribedFile[] => [...indexed().files.values()];

export const findFile = (path: string): DescribedFile | undefined => indexed().files.get(path);

export const findSymbol = (fullName: string): DescribedFile | undefined => indexed().bySymbol.get(fullName);

/** The file and everything that it imports, each after its own imports. */
export function withImports(file: DescribedFile): readonly DescribedFile[] {
  const found = new Set<DescribedFile>();
  const add = (one: DescribedFile): void => {
    for (const path of one.imports) {
      const imported = findFile(path);
      if (imported) add(imported);
    }
    found.add(one);
  };
  add(file);
  return [...found];
}

/** Everything as a google.protobuf.FileDescriptorSet. */
export const fileDescriptorSet = (): Uint8Array =>
  encode(FileDescriptorSet, { file: describedFiles().map(({ bytes }) => decode(FileDescriptorProto, bytes)) });

function indexed(): Index {
  index ??= build();
  return index;
}

function build(): Index {
  const files = new Map<string, DescribedFile>();
  const bySymbol = new Map<string, DescribedFile>();
  for (const [path, base64] of Object.entries(descriptors)) {
    const bytes = Buffer.from(base64, "base64");
    const described = decode(FileDescriptorProto, bytes);
    const services = described.service.map(({ name }) => `${described.package}.${name}`);
    const file = { path, bytes, imports: described.dependency, services };
    files.set(path, file);
    for (const symbol of symbolsOf(described)) bySymbol.set(symbol, file);
  }
  return { files, bySymbol };
}

function symbolsOf(file: FileDescriptorProto): readonly string[] {
  const scope = file.package;
  return [
    ...file.messageType.flatMap((message) => symbolsOfMessage(scope, message)),
    ...file.enumType.flatMap((one) => symbolsOfEnum(scope, one)),
    ...file.service.flatMap(({ name, method }) => [
      `${scope}.${name}`,
      ...method.map((one) => `${scope}.${name}.${one.name}`),
    ]),
  ];
}

function symbolsOfMessage(scope: string, message: DescriptorProto): readonly string[] {
  const name = `${scope}.${message.name}`;
  return [
    name,
    ...[...message.field, ...message.oneofDecl].map((one) => `${name}.${one.name}`),
    ...message.nestedType.flatMap((inner) => symbolsOfMessage(name, inner)),
    ...message.enumType.flatMap((one) => symbolsOfEnum(name, one)),
  ];
}

/** An enum's values are declared beside it, not within it. */
const symbolsOfEnum = (scope: string, { name, value }: DescriptorProto["enumType"][number]): readonly string[] => [
  `${scope}.${name}`,
  ...value.map((one) => `${scope}.${one.name}`),
];
