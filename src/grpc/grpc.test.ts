import { deepEqual, equal, ok, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { Fault } from "#base/fault.ts";
import { ErrorInfo, RetryInfo } from "#wire/generated/google/rpc/error_details.ts";
import { isGrpcType } from "./content-type.ts";
import { decodeBinary, encodeBinary, metadataFields } from "./metadata.ts";
import { MessageReader, prefixBytes, writePrefix, type Framed } from "./body/message-reader.ts";
import { detail, detailsOf, errorOf, GrpcError, grpcCode, percentDecode, percentEncode } from "./status.ts";
import { statusFields, statusOf } from "./status.ts";
import { formatTimeout, parseTimeoutMs } from "./timeout.ts";

const fieldsOf = (pairs: readonly (readonly [string, string])[]) => ({
  get: (name: string) => pairs.find(([known]) => known === name)?.[1],
});

describe("a status", () => {
  test("survives encoding as trailers, with its details", () => {
    const info = { reason: "token-stale", domain: "millrace", metadata: new Map([["task", "t0-1"]]) };
    const error = new GrpcError(grpcCode.failedPrecondition, "zu spät: 100 %", [detail(ErrorInfo, info)]);
    const fields = statusFields(error);
    ok(
      fields.every(([, value]) => /^[ -~]*$/.test(value)),
      "fields are printable ASCII",
    );
    const read = statusOf(fieldsOf(fields), fields);
    equal(read?.code, grpcCode.failedPrecondition);
    equal(read?.message, "zu spät: 100 %");
    deepEqual(read && detailsOf(read, ErrorInfo), [info]);
    deepEqual(read && detailsOf(read, RetryInfo), []);
  });

  test("of success is not an error, a missing or invalid one is", () => {
    equal(statusOf(fieldsOf([["grpc-status", "0"]]), []), undefined);
    equal(statusOf(fieldsOf([]), [])?.code, grpcCode.unknown);
    equal(statusOf(fieldsOf([["grpc-status", "soso"]]), [])?.code, grpcCode.unknown);
    const odd = statusOf(
      fieldsOf([
        ["grpc-status", "7"],
        ["grpc-status-details-bin", "!!"],
      ]),
      [],
    );
    deepEqual([odd?.code, odd?.details], [7, []]);
  });

  test("of a Fault has the Fault's code and message, of any other error it reveals nothing", () => {
    equal(errorOf(new Fault("not-found", "read blob", {})).code, grpcCode.notFound);
    const other = errorOf(new Error("the password is hunter2"));
    equal(other.code, grpcCode.internal);
    ok(!other.message.includes("hunter2"));
  });

  test("has a message of any characters", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => {
        const encoded = percentEncode(text);
        ok(/^(?! )[ -~]*(?<! )$/.test(encoded), "no field begins or ends with a blank");
        equal(percentDecode(encoded), text.toWellFormed());
      }),
    );
    equal(percentEncode(" a b "), "%20a b%20");
    equal(percentDecode("50% of %zz%4"), "50% of %zz%4");
  });
});

test("a timeout is a number and a unit", () => {
  const cases: readonly (readonly [string, number | undefined])[] = [
    ["1S", 1_000],
    ["99999999n", 99.999_999],
    ["250m", 250],
    ["3u", 0.003],
    ["2M", 120_000],
    ["23H", 82_800_000],
    ["99999999H", Number.POSITIVE_INFINITY],
    ["0m", 0],
    ["", undefined],
    ["S", undefined],
    ["1", undefined],
    ["-1S", undefined],
    ["1s", undefined],
    ["123456789S", undefined],
    ["1 S", undefined],
  ];
  for (const [text, ms] of cases) {
    const got = parseTimeoutMs(text);
    ok(ms === undefined || got === undefined ? got === ms : got === ms || Math.abs(got - ms) < 1e-6, text);
  }
  fc.assert(
    fc.property(fc.double({ min: 0, max: 80_000_000, noNaN: true }), (ms) => {
      const back = parseTimeoutMs(formatTimeout(ms)) ?? -1;
      ok(back >= ms - 1e-6 && back <= ms + 1_001, `${ms} -> ${formatTimeout(ms)} -> ${back}`);
    }),
  );
});

describe("metadata", () => {
  test("that is binary is sent as base64, and read with and without padding", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        deepEqual(decodeBinary(encodeBinary(bytes)), Buffer.from(bytes));
        deepEqual(decodeBinary(Buffer.from(bytes).toString("base64")), Buffer.from(bytes));
      }),
    );
    deepEqual(decodeBinary("AQ,Ag"), Buffer.from([1]));
    equal(decodeBinary("not base64!"), undefined);
  });

  test("that is reserved, or cannot be sent, is left out", () => {
    deepEqual(
      metadataFields([
        ["X-Trace", "a"],
        ["grpc-status", "0"],
        [":path", "/"],
        ["te", "x"],
        ["bad name", "x"],
        ["newline", "a\nb"],
        ["blob-bin", Buffer.from([0, 255])],
        ["bytes", Buffer.from([1])],
      ]),
      [
        ["x-trace", "a"],
        ["blob-bin", "AP8"],
      ],
    );
  });
});

describe("messages", () => {
  const framed = (messages: readonly Uint8Array[]): Buffer =>
    Buffer.concat(
      messages.map((bytes) => {
        const whole = Buffer.alloc(prefixBytes + bytes.length);
        writePrefix(whole, 0, bytes.length, bytes.length % 2 === 1);
        whole.set(bytes, prefixBytes);
        return whole;
      }),
    );

  test("are read as they were written, however the bytes are split", () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 10 }),
        fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 10 }),
        (messages, cuts) => {
          const reader = new MessageReader(1_000);
          const got: Framed[] = [];
          const bytes = framed(messages);
          for (let at = 0, i = 0; at < bytes.length; i += 1) {
            const end = Math.min(bytes.length, at + (cuts[i % cuts.length] as number));
            const lent = Buffer.from(bytes.subarray(at, end));
            reader.read(lent, { take: (message) => got.push(message) });
            lent.fill(0xee);
            at = end;
          }
          deepEqual(
            got.map((message) => message.bytes),
            messages.map((message) => Buffer.from(message)),
          );
          ok(got.every((message, i) => message.compressed === ((messages[i] ?? []).length % 2 === 1)));
          ok(reader.isBetween);
        },
      ),
    );
  });

  test("that are too large are refused by their length alone; an invalid flag too", () => {
    const large = Buffer.from([0, 0, 0, 4, 0]);
    throws(() => new MessageReader(1_000).read(large, { take() {} }), { code: grpcCode.resourceExhausted });
    const odd = Buffer.from([2, 0, 0, 0, 0]);
    throws(() => new MessageReader(1_000).read(odd, { take() {} }), { code: grpcCode.internal });
    const cut = new MessageReader(1_000);
    cut.read(Buffer.from([0, 0, 0, 0, 2, 7]), { take() {} });
    equal(cut.isBetween, false);
  });
});

test("the content type of gRPC", () => {
  for (const type of [
    "application/grpc",
    "application/grpc+proto",
    "application/grpc; charset=x",
    "application/grpc+proto;v=1",
  ])
    ok(isGrpcType(type), type);
  for (const type of [
    undefined,
    "",
    "application/grpc-web",
    "application/grpc+json",
    "text/plain",
    "application/grpcx",
  ])
    ok(!isGrpcType(type), String(type));
});
