/** Compares all generated code with protobufjs, which is independent of our generator. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { globSync } from "node:fs";
import { join, sep } from "node:path";
import { describe, test } from "node:test";
import fc, { type Arbitrary } from "fast-check";
import protobuf from "protobufjs";
import { isFault } from "#base/fault.ts";
import * as toolProtocol from "./generated/blaze/worker/worker_protocol.ts";
import * as remoteAsset from "./generated/build/bazel/remote/asset/v1/remote_asset.ts";
import * as remoteExecution from "./generated/build/bazel/remote/execution/v2/remote_execution.ts";
import * as semver from "./generated/build/bazel/semver/semver.ts";
import * as byteStream from "./generated/google/bytestream/bytestream.ts";
import * as operations from "./generated/google/longrunning/operations.ts";
import * as any from "./generated/google/protobuf/any.ts";
import * as descriptor from "./generated/google/protobuf/descriptor.ts";
import * as duration from "./generated/google/protobuf/duration.ts";
import * as empty from "./generated/google/protobuf/empty.ts";
import * as timestamp from "./generated/google/protobuf/timestamp.ts";
import * as wrappers from "./generated/google/protobuf/wrappers.ts";
import * as code from "./generated/google/rpc/code.ts";
import * as errorDetails from "./generated/google/rpc/error_details.ts";
import * as status from "./generated/google/rpc/status.ts";
import * as health from "./generated/grpc/health/v1/health.ts";
import * as reflection from "./generated/grpc/reflection/v1/reflection.ts";
import * as reflectionAlpha from "./generated/grpc/reflection/v1alpha/reflection.ts";
import * as builds from "./generated/millrace/build/v1/builds.ts";
import * as commands from "./generated/millrace/work/v1/commands.ts";
import * as events from "./generated/millrace/work/v1/events.ts";
import * as model from "./generated/millrace/work/v1/model.ts";
import * as queries from "./generated/millrace/work/v1/queries.ts";
import * as streams from "./generated/millrace/work/v1/streams.ts";
import * as tasks from "./generated/millrace/work/v1/tasks.ts";
import * as view from "./generated/millrace/work/v1/view.ts";
import * as work from "./generated/millrace/work/v1/work.ts";
import { descriptors } from "./generated/descriptors.ts";
import { decode, encode, type Message, type Service } from "./message.ts";

const modules: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  "blaze/worker/worker_protocol.proto": toolProtocol,
  "build/bazel/remote/asset/v1/remote_asset.proto": remoteAsset,
  "build/bazel/remote/execution/v2/remote_execution.proto": remoteExecution,
  "build/bazel/semver/semver.proto": semver,
  "google/bytestream/bytestream.proto": byteStream,
  "google/longrunning/operations.proto": operations,
  "google/protobuf/any.proto": any,
  "google/protobuf/descriptor.proto": descriptor,
  "google/protobuf/duration.proto": duration,
  "google/protobuf/empty.proto": empty,
  "google/protobuf/timestamp.proto": timestamp,
  "google/protobuf/wrappers.proto": wrappers,
  "google/rpc/code.proto": code,
  "google/rpc/error_details.proto": errorDetails,
  "google/rpc/status.proto": status,
  "grpc/health/v1/health.proto": health,
  "grpc/reflection/v1/reflection.proto": reflection,
  "grpc/reflection/v1alpha/reflection.proto": reflectionAlpha,
  "millrace/build/v1/builds.proto": builds,
  "millrace/work/v1/commands.proto": commands,
  "millrace/work/v1/events.proto": events,
  "millrace/work/v1/model.proto": model,
  "millrace/work/v1/tasks.proto": tasks,
  "millrace/work/v1/queries.proto": queries,
  "millrace/work/v1/streams.proto": streams,
  "millrace/work/v1/view.proto": view,
  "millrace/work/v1/work.proto": work,
};

const folder = join(import.meta.dirname, "..", "..", "proto");
const root = new protobuf.Root();
root.resolvePath = (_origin, target) => join(folder, target);
root.loadSync(Object.keys(modules), { keepCase: true });

const isMessage = (value: unknown): value is Message<unknown> =>
  typeof value === "object" && value !== null && "typeName" in value && "read" in value;
const isService = (value: unknown): value is Service =>
  typeof value === "object" && value !== null && "typeName" in value && "methods" in value;
const messages = Object.values(modules).flatMap((module) => Object.values(module).filter(isMessage));
const services = Object.values(modules).flatMap((module) => Object.values(module).filter(isService));

// Random messages, in both forms: ours, and that of protobufjs with the defaults left out.

type Both = { readonly ours: unknown; readonly theirs: unknown };
type Plain = Record<string, unknown>;

const camel = (name: string): string => name.replace(/_+([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
const nothing: Both = { ours: undefined, theirs: undefined };
const same = (value: unknown): Both => ({ ours: value, theirs: value });
const withDefault = (value: unknown): Both => {
  const isDefault = value === "" || value === 0 || value === false || (value instanceof Uint8Array && !value.length);
  return { ours: value, theirs: isDefault ? undefined : value };
};

const text = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 20 }),
  fc.string({ unit: "grapheme", minLength: 30, maxLength: 200 }),
  fc.string({ maxLength: 30 }),
);
const int32 = fc.oneof(fc.nat({ max: 200 }), fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }));
const int64 = fc.oneof(fc.nat({ max: 200 }), fc.maxSafeInteger());
const scalars: Readonly<Record<string, Arbitrary<unknown>>> = {
  string: text,
  bytes: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  bool: fc.boolean(),
  int32,
  uint32: fc.oneof(fc.nat({ max: 200 }), fc.integer({ min: 0, max: 2 ** 32 - 1 })),
  int64,
  uint64: fc.oneof(fc.nat({ max: 200 }), fc.maxSafeNat()),
  double: fc.double({ noNaN: true }).map((n) => (Object.is(n, -0) ? 0 : n)),
};

function valueOf(field: protobuf.Field | protobuf.MapField, depth: number): Arbitrary<Both> {
  const { resolvedType } = field;
  if (resolvedType instanceof protobuf.Type) return messageOf(resolvedType, depth - 1);
  const scalar = scalars[resolvedType instanceof protobuf.Enum ? "int32" : field.type];
  if (!scalar) throw new Error(`${field.fullName}: ${field.type}`);
  return scalar.map(same);
}

function fieldOf(field: protobuf.Field, depth: number): Arbitrary<Both> {
  const isDeep = field.resolvedType instanceof protobuf.Type && depth <= 0;
  if (field instanceof protobuf.MapField) {
    if (isDeep) return fc.constant({ ours: new Map(), theirs: {} });
    // Not a number: objects list numeric keys first, whatever the order of insertion.
    const key = text.map((some) => `k${some}`);
    return fc.array(fc.tuple(key, valueOf(field, depth)), { maxLength: 3 }).map((entries) => {
      const ours = new Map(entries.map(([key, value]) => [key, value.ours]));
      const sorted = [...new Map(entries)].sort(([one], [other]) => (one < other ? -1 : 1));
      return { ours, theirs: Object.fromEntries(sorted.map(([key, value]) => [key, value.theirs])) };
    });
  }
  if (field.repeated) {
    if (isDeep) return fc.constant({ ours: [], theirs: [] });
    return fc
      .array(valueOf(field, depth), { maxLength: 3 })
      .map((all) => ({ ours: all.map(({ ours }) => ours), theirs: all.map(({ theirs }) => theirs) }));
  }
  if (isDeep) return fc.constant(nothing);
  const value = valueOf(field, depth);
  if (field.resolvedType instanceof protobuf.Type || field.getOption("proto3_optional") === true)
    return fc.option(value, { nil: nothing });
  return value.map(({ ours }) => withDefault(ours));
}

function messageOf(type: protobuf.Type, depth = 3): Arbitrary<Both> {
  const oneofs = type.oneofsArray.filter(({ name }) => !name.startsWith("_"));
  const alone = type.fieldsArray.filter((field) => !oneofs.some((oneof) => oneof.fieldsArray.includes(field)));
  const chosen = oneofs.map((oneof) => {
    const members = oneof.fieldsArray.filter((one) => depth > 0 || !(one.resolvedType instanceof protobuf.Type));
    if (members.length === 0) return fc.constant(undefined);
    const values = members.map((one) => valueOf(one, depth).map((value) => ({ name: one.name, value })));
    return fc.option(fc.oneof(...values), { nil: undefined });
  });
  return fc
    .tuple(fc.tuple(...alone.map((field) => fieldOf(field, depth))), fc.tuple(...chosen))
    .map(([values, choices]) => {
      const ours: Plain = {};
      const theirs: Plain = {};
      for (const [i, value] of values.entries()) {
        const { name } = alone[i] as protobuf.Field;
        ours[camel(name)] = value.ours;
        if (value.theirs !== undefined) theirs[name] = value.theirs;
      }
      for (const [i, choice] of choices.entries()) {
        const { name } = oneofs[i] as protobuf.OneOf;
        ours[camel(name)] = choice && { kind: camel(choice.name), value: choice.value.ours };
        if (choice) theirs[choice.name] = choice.value.theirs;
      }
      return { ours, theirs };
    });
}

describe("every generated message", () => {
  for (const type of messages)
    test(`${type.typeName} has the bytes that protobufjs writes, and is decoded from them (PB2)`, () => {
      const reference = root.lookupType(type.typeName);
      fc.assert(
        fc.property(messageOf(reference), ({ ours, theirs }) => {
          const bytes = encode(type, ours);
          deepEqual(bytes.toString("hex"), Buffer.from(reference.encode(theirs as object).finish()).toString("hex"));
          deepEqual(decode(type, bytes), ours);
        }),
        { numRuns: 60 },
      );
    });

  test("survives bytes of other messages: a message or a Fault, nothing else (PB1)", () => {
    const change = fc.record({ at: fc.nat(), to: fc.nat({ max: 255 }), how: fc.constantFrom("set", "cut", "insert") });
    const hostile = fc.constantFrom(...messages).chain((type) =>
      fc.tuple(
        fc.constant(type),
        messageOf(root.lookupType(type.typeName)).map(({ ours }) => encode(type, ours)),
        fc.array(change, { minLength: 1, maxLength: 4 }),
      ),
    );
    let read = 0;
    fc.assert(
      fc.property(hostile, ([type, bytes, changes]) => {
        let changed: Buffer = bytes;
        for (const { at, to, how } of changes) {
          const place = at % (changed.length + 1);
          const rest = changed.subarray(how === "insert" ? place : place + 1);
          changed = Buffer.concat([changed.subarray(0, place), Buffer.from(how === "cut" ? [] : [to]), rest]);
        }
        try {
          const message = decode(type, changed);
          read += 1;
          deepEqual(decode(type, encode(type, message)), message);
        } catch (error) {
          if (!isFault(error, "invalid")) throw error;
        }
      }),
      { numRuns: 4_000 },
    );
    ok(read > 100, `only ${read} of them could still be read`);
  });
});

describe("the generated code", () => {
  test("is everything in its folder", () => {
    const files = globSync("**/*.ts", { cwd: join(import.meta.dirname, "generated") }).map((path) =>
      path.split(sep).join("/"),
    );
    const wanted = Object.keys(modules).map((path) => path.replace(/\.proto$/, ".ts"));
    deepEqual(files.toSorted(), [...wanted, "descriptors.ts"].toSorted());
  });

  test("covers all of proto/, and its descriptors are what protobufjs reads in the files", () => {
    for (const path of Object.keys(modules)) {
      if (path === "google/protobuf/descriptor.proto") continue;
      const described = decode(descriptor.FileDescriptorProto, Buffer.from(descriptors[path] ?? "", "base64"));
      equal(described.name, path);
      for (const message of described.messageType) {
        const fields = root.lookupType(`${described.package}.${message.name}`).fields;
        deepEqual(
          message.field.map(({ name, number }) => [name, number]),
          Object.values(fields).map(({ name, id }) => [name, id]),
        );
      }
    }
    equal(Object.keys(descriptors).length, Object.keys(modules).length - 1);
  });

  test("names every method as its path does", () => {
    ok(services.length >= 7);
    for (const { typeName, methods } of services) {
      const reference = root.lookupService(typeName);
      deepEqual(
        Object.values(methods).map(({ name }) => name),
        reference.methodsArray.map(({ name }) => name),
      );
      for (const { name, path } of Object.values(methods)) equal(path, `/${typeName}/${name}`);
    }
  });
});
