/** Other protobuf libraries, each with the messages of our own .proto files. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import protobufjs from "protobufjs";
import { fileDescriptorSet } from "#wire/descriptors.ts";
import { installPeers, loadPeer, versions } from "./install.ts";

export type Codec = {
  readonly name: string;
  type(typeName: string): {
    /** The message as the library holds it. */
    decode(bytes: Uint8Array): unknown;
    encode(message: unknown): Uint8Array;
  };
};

const folder = join(import.meta.dirname, "..", "..", "proto");

/** It generates code for each message at run time, the same that its command line writes into a file. */
export function protobufJs(protoPaths: readonly string[]): Codec {
  const root = new protobufjs.Root();
  root.resolvePath = (_origin, target) => join(folder, target);
  root.loadSync([...protoPaths]);
  return {
    name: "protobufjs 8.8.1",
    type: (typeName) => {
      const type = root.lookupType(typeName);
      return { decode: (bytes) => type.decode(bytes), encode: (message) => type.encode(message as object).finish() };
    },
  };
}

/** Those that have to be installed first, or why they could not be. */
export async function protobufPeers(protoPaths: readonly string[]): Promise<readonly Codec[] | string> {
  const failed = installPeers(["@bufbuild/protobuf", "pbf", "protocol-buffers-schema"]);
  if (failed !== undefined) return failed;
  return [await protobufEs(), await pbf(protoPaths)];
}

async function protobufEs(): Promise<Codec> {
  const es = await loadPeer<{
    createFileRegistry(set: unknown): { getMessage(name: string): unknown };
    fromBinary(schema: unknown, bytes: Uint8Array): unknown;
    toBinary(schema: unknown, message: unknown): Uint8Array;
  }>("@bufbuild/protobuf");
  const { FileDescriptorSetSchema } = await loadPeer<{ FileDescriptorSetSchema: unknown }>(
    "@bufbuild/protobuf",
    "/wkt",
  );
  const registry = es.createFileRegistry(es.fromBinary(FileDescriptorSetSchema, fileDescriptorSet()));
  return {
    name: `protobuf-es ${versions["@bufbuild/protobuf"]}`,
    type: (typeName) => {
      const schema = registry.getMessage(typeName);
      return { decode: (bytes) => es.fromBinary(schema, bytes), encode: (message) => es.toBinary(schema, message) };
    },
  };
}

/** By `read` and `write` with the message's name behind. */
type Compiled = Readonly<Record<string, (first: unknown, second?: unknown) => unknown>>;

/** Its compiler has no import path, so it leaves out the fields of imported types. */
async function pbf(protoPaths: readonly string[]): Promise<Codec> {
  const { PbfReader, PbfWriter } = await loadPeer<{
    readonly PbfReader: new (bytes: Uint8Array) => object;
    readonly PbfWriter: new () => { finish(): Uint8Array };
  }>("pbf");
  const compiler = await loadPeer<{ compile(schema: unknown): Compiled }>("pbf", "/compile");
  const parser = await loadPeer<{ default(source: string): unknown }>("protocol-buffers-schema");
  const sources = protoPaths.map((path) => readFileSync(join(folder, path), "utf8"));
  const compiled = Object.assign(
    {},
    ...sources.map((source) => compiler.compile(parser.default(source.replace(/^import .*$|^ +google\..*$/gm, "")))),
  ) as Compiled;
  return {
    name: `pbf ${versions.pbf}`,
    type: (typeName) => {
      const name = typeName.slice(typeName.lastIndexOf(".") + 1);
      const [read, write] = [compiled[`read${name}`], compiled[`write${name}`]];
      if (!read || !write) throw new Error(`pbf made no code for ${typeName}`);
      return {
        decode: (bytes) => read(new PbfReader(bytes)),
        encode: (message) => {
          const to = new PbfWriter();
          write(message, to);
          return to.finish();
        },
      };
    },
  };
}
