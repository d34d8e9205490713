import { deepEqual, equal, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import { isFault } from "#base/fault.ts";
import {
  Directory,
  FindMissingBlobsRequest,
  Tree,
} from "./generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { WriteRequest } from "./generated/google/bytestream/bytestream.ts";
import { Any } from "./generated/google/protobuf/any.ts";
import { Int64Value, StringValue, UInt64Value } from "./generated/google/protobuf/wrappers.ts";
import { ErrorInfo } from "./generated/google/rpc/error_details.ts";
import { ServerReflectionRequest } from "./generated/grpc/reflection/v1/reflection.ts";
import { TaskPlan } from "./generated/millrace/work/v1/model.ts";
import { decode, encode, type Message } from "./message.ts";
import { Writer } from "./writer.ts";

const bytes = (hex: string): Buffer => Buffer.from(hex.replaceAll(" ", ""), "hex");

const refused = (type: Message<unknown>, hex: string, why: string): void =>
  throws(
    () => decode(type, bytes(hex)),
    (error) => isFault(error, "invalid") && error.facts["why"] === why && error.facts["type"] === type.typeName,
    hex,
  );

describe("reading (PB1)", () => {
  test("refuses what is cut off, too long or out of place", () => {
    refused(StringValue, "0a 05 61", "a length beyond the end");
    refused(StringValue, "0a ff ff ff ff 0f 61", "a length beyond the end");
    refused(StringValue, "0a 02 c3 28", "text that is not UTF-8");
    refused(StringValue, `0a 20 ${"61".repeat(31)} ff`, "text that is not UTF-8");
    refused(StringValue, "00", "a field without a number");
    refused(StringValue, "07", "a field without a number");
    refused(StringValue, "80 80 80 80 80 01", "a field with an impossible number");
    refused(StringValue, "80 00", "a field with an impossible number");
    refused(StringValue, "0e", "a field of no known type");
    refused(StringValue, "0c", "a field of no known type");
    refused(Int64Value, "08 ff ff ff ff ff ff ff ff ff ff 01", "a number longer than ten bytes");
    refused(Int64Value, "08 ff", "a number without an end");
    refused(Int64Value, "11 00 00", "a field beyond the end");
    refused(Int64Value, "15 00 00", "a field beyond the end");
    refused(FindMissingBlobsRequest, "12 02 0a 05 61 61 61 61 61", "a field goes beyond its message");
  });

  test("refuses numbers that it cannot represent", () => {
    refused(Int64Value, "08 80 80 80 80 80 80 80 10", "a number beyond 2^53");
    refused(UInt64Value, "08 ff ff ff ff ff ff ff ff ff 01", "a number beyond 2^53");
    equal(decode(Int64Value, bytes("08 ff ff ff ff ff ff ff ff ff 01")).value, -1);
    equal(decode(Int64Value, bytes("08 ff ff ff ff ff ff ff 0f")).value, Number.MAX_SAFE_INTEGER);
  });

  test("skips unknown fields, whatever their type", () => {
    const unknown = "10 96 01 19 00 00 00 00 00 00 00 00 22 03 61 62 63 2d 00 00 00 00";
    deepEqual(decode(StringValue, bytes(`${unknown} 0a 01 78 ${unknown}`)), { value: "x" });
    deepEqual(decode(StringValue, bytes("08 05 0a 01 78")), { value: "x" }, "of another type than it should have");
    deepEqual(decode(StringValue, bytes("0a 01 78 4b 53 08 01 54 4c")), { value: "x" }, "groups");
    refused(StringValue, "4b 54", "a group that ends another");
    refused(StringValue, "4b 08 01", "a group without an end");
    refused(StringValue, "4b".repeat(100), "groups within groups too deep");
  });

  test("limits depth and number of objects", () => {
    const deep = (count: number): Buffer => {
      const to = new Writer();
      const starts = Array.from({ length: count }, () => to.open(10));
      for (const start of starts.toReversed()) to.close(start);
      return Buffer.from(to.bytes.subarray(0, to.pos));
    };
    decode(Tree, deep(4));
    throws(() => decode(Tree, deep(4), { depthMax: 1, itemsMax: 10 }), /too deep/);
    const many = Buffer.from("0a00".repeat(1_000), "hex");
    equal(decode(Directory, many).files.length, 1_000);
    throws(() => decode(Directory, many, { depthMax: 10, itemsMax: 999 }), /too many messages/);
  });

  test("merges a message that comes in two parts, and takes the last of two values", () => {
    const [first, second] = [
      encode(ErrorInfo, { reason: "one", domain: "", metadata: new Map([["a", "1"]]) }),
      encode(ErrorInfo, {
        reason: "two",
        domain: "d",
        metadata: new Map([
          ["a", "2"],
          ["b", "3"],
        ]),
      }),
    ];
    deepEqual(decode(ErrorInfo, Buffer.concat([first, second])), {
      reason: "two",
      domain: "d",
      metadata: new Map([
        ["a", "2"],
        ["b", "3"],
      ]),
    });
    const root = (files: readonly string[]): Buffer =>
      encode(Tree, {
        root: {
          files: files.map((name) => ({ name, isExecutable: false })),
          directories: [],
          symlinks: [],
        },
        children: [],
      });
    const tree = decode(Tree, Buffer.concat([root(["a"]), root(["b"])]));
    deepEqual(
      tree.root?.files.map(({ name }) => name),
      ["a", "b"],
    );
    const chosen = decode(ServerReflectionRequest, bytes("1a 01 61 3a 01 62"));
    deepEqual(chosen.messageRequest, { kind: "listServices", value: "b" });
  });

  test("reads lists of numbers packed or not, and returns bytes without copying them", () => {
    const source = bytes("0a 01 78 52 03 01 02 03");
    const { data } = decode(WriteRequest, source);
    source[5] = 9;
    deepEqual([...data], [9, 2, 3]);
  });
});

describe("writing (PB2)", () => {
  test("leaves defaults out, but not where absence means something", () => {
    equal(encode(WriteRequest, { resourceName: "", writeOffset: 0, finishWrite: false, data: Buffer.of() }).length, 0);
    equal(encode(TaskPlan, { key: "", spec: "" }).toString("hex"), "");
    equal(encode(TaskPlan, { key: "", spec: "", affinity: "" }).toString("hex"), "1a00");
  });

  test("writes lengths of every size in as few bytes as they need", () => {
    for (const length of [0, 1, 42, 43, 126, 127, 128, 200, 16_383, 16_384, 70_000])
      for (const letter of ["a", "é", "漢", "🙂"]) {
        const value = letter.repeat(length);
        const message = { typeUrl: value, value: Buffer.from(value) };
        deepEqual(decode(Any, encode(Any, message)), message);
        const size = Buffer.byteLength(value);
        const lengthBytes = size < 2 ** 7 ? 1 : size < 2 ** 14 ? 2 : size < 2 ** 21 ? 3 : 4;
        equal(encode(StringValue, { value }).length, size === 0 ? 0 : 1 + lengthBytes + size);
      }
  });

  test("refuses numbers that do not fit, and continues with the next message", () => {
    for (const value of [0.5, 2 ** 53, Number.NaN, -(2 ** 53)])
      throws(
        () => encode(Int64Value, { value }),
        (error) => isFault(error, "invalid"),
      );
    throws(
      () => encode(UInt64Value, { value: -1 }),
      (error) => isFault(error, "invalid"),
    );
    equal(encode(Int64Value, { value: 1 }).toString("hex"), "0801");
  });

  test("writes after existing bytes", () => {
    const to = new Writer(Buffer.alloc(5), 5);
    StringValue.write({ value: "x".repeat(300) }, to);
    equal(to.bytes.subarray(0, 5).toString("hex"), "0000000000");
    deepEqual(decode(StringValue, to.bytes.subarray(5, to.pos)), { value: "x".repeat(300) });
  });
});
