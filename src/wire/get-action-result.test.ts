import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { isFault } from "#base/fault.ts";
import { GetActionResultRequest } from "./generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { getActionResultRequest, UsualGetActionResult } from "./get-action-result.ts";
import { decode, encode } from "./message.ts";

const hash = fc
  .array(fc.constantFrom(...Array.from("0123456789abcdef")), { minLength: 64, maxLength: 64 })
  .map((digits) => digits.join(""));

const request = fc.record({
  instanceName: fc.constantFrom("", "main", "a/b"),
  actionDigest: fc.option(
    fc.record({ hash: fc.oneof(hash, fc.string()), sizeBytes: fc.oneof(fc.nat(300), fc.nat(2 ** 40)) }),
    { nil: undefined },
  ),
  inlineStdout: fc.boolean(),
  inlineStderr: fc.boolean(),
  inlineOutputFiles: fc.array(fc.string(), { maxLength: 2 }),
  digestFunction: fc.constantFrom(0, 1, 9),
});

const plain = (message: GetActionResultRequest): GetActionResultRequest => ({
  instanceName: message.instanceName,
  actionDigest: message.actionDigest,
  inlineStdout: message.inlineStdout,
  inlineStderr: message.inlineStderr,
  inlineOutputFiles: message.inlineOutputFiles,
  digestFunction: message.digestFunction,
});

/** What the generated code decodes, or that it refuses. */
function read(type: typeof GetActionResultRequest, bytes: Uint8Array): GetActionResultRequest | "refused" {
  try {
    return plain(decode(type, bytes));
  } catch (error) {
    if (isFault(error, "invalid")) return "refused";
    throw error;
  }
}

describe("GetActionResult, hand-written", () => {
  test("decodes what the generated code decodes", () => {
    fc.assert(
      fc.property(request, (message) => {
        const bytes = encode(GetActionResultRequest, message);
        deepEqual(read(getActionResultRequest, bytes), read(GetActionResultRequest, bytes));
      }),
    );
  });

  test("also for bytes that were changed or cut off", () => {
    const change = fc.record({ at: fc.nat(90), to: fc.nat(255), length: fc.nat(90) });
    fc.assert(
      fc.property(request, change, (message, { at, to, length }) => {
        const bytes = Buffer.from(encode(GetActionResultRequest, message)).subarray(0, length);
        if (at < bytes.length) bytes[at] = to;
        deepEqual(read(getActionResultRequest, bytes), read(GetActionResultRequest, bytes));
      }),
      { numRuns: 500 },
    );
  });

  test("refuses a hash that is not UTF-8, as the generated code does", () => {
    const digest = { hash: "0".repeat(64), sizeBytes: 142 };
    const rest = { inlineStdout: false, inlineStderr: false, inlineOutputFiles: [], digestFunction: 0 };
    const bytes = Buffer.from(encode(GetActionResultRequest, { instanceName: "", actionDigest: digest, ...rest }));
    bytes[10] = 0xff;
    equal(read(GetActionResultRequest, bytes), "refused");
    equal(read(getActionResultRequest, bytes), "refused");
  });

  test("returns the hash as 32-bit words if it is one", () => {
    const words = new Uint32Array(8);
    const asked = (hex: string): UsualGetActionResult => {
      const bytes = encode(GetActionResultRequest, {
        instanceName: "",
        actionDigest: { hash: hex, sizeBytes: 142 },
        inlineStdout: false,
        inlineStderr: false,
        inlineOutputFiles: [],
        digestFunction: 0,
      });
      const message = decode(getActionResultRequest, bytes);
      ok(message instanceof UsualGetActionResult);
      equal(message.sizeBytes, 142);
      return message;
    };
    const hex = "0123456789abcdef".repeat(4);
    ok(asked(hex).wordsInto(words));
    equal(Buffer.copyBytesFrom(words).toString("hex"), hex);
    for (const wrong of [hex.toUpperCase(), `g${hex.slice(1)}`, `${hex.slice(1)}/`])
      equal(asked(wrong).wordsInto(words), false);
  });
});
