import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { isFault } from "#base/fault.ts";
import { WriteRequest } from "./generated/google/bytestream/bytestream.ts";
import { decode, encode } from "./message.ts";
import { writeRequest } from "./write-request.ts";

const message = fc.record({
  resourceName: fc.string({ unit: "grapheme", maxLength: 40 }),
  writeOffset: fc.oneof(fc.constant(0), fc.maxSafeNat()),
  finishWrite: fc.boolean(),
  data: fc.uint8Array({ maxLength: 300 }),
});
const cuts = fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 8 });

function attempt(read: () => WriteRequest): WriteRequest | "refused" {
  try {
    const { data, ...rest } = read();
    return { ...rest, data: Buffer.from(data) };
  } catch (error) {
    if (!isFault(error, "invalid")) throw error;
    return "refused";
  }
}

/** Decoded in parts, if the first `shown` bytes allow it, and put together again. Undefined: it must be read whole. */
function inParts(bytes: Buffer, shown: number, lengths: readonly number[]): WriteRequest | undefined {
  const parts = writeRequest.inParts?.(bytes.subarray(0, shown), bytes.length);
  if (!parts) return undefined;
  const told: WriteRequest[] = [];
  const data = bytes.subarray(parts.dataAt);
  ok(data.length > 0);
  for (let at = 0, i = 0; at < data.length; i += 1) {
    const end = Math.min(data.length, at + (lengths[i % lengths.length] ?? 1));
    told.push(parts.part(data.subarray(at, end), at, end === data.length));
    at = end;
  }
  const [first] = told;
  ok(first);
  let writeOffset = first.writeOffset;
  for (const [i, part] of told.entries()) {
    equal(part.resourceName, first.resourceName);
    equal(part.writeOffset, writeOffset);
    equal(part.finishWrite && i < told.length - 1, false);
    writeOffset += part.data.length;
  }
  const finishWrite = told.at(-1)?.finishWrite ?? false;
  return { ...first, finishWrite, data: Buffer.concat(told.map((part) => part.data)) };
}

describe("ByteStream.Write in parts", () => {
  test("is equivalent to the whole message, however it is split", () => {
    fc.assert(
      fc.property(message, fc.nat({ max: 400 }), cuts, (given, shown, lengths) => {
        const bytes = encode(WriteRequest, given);
        const wanted = attempt(() => decode(WriteRequest, bytes));
        deepEqual(
          attempt(() => decode(writeRequest, bytes)),
          wanted,
        );
        const whole = inParts(bytes, shown, lengths);
        if (whole) deepEqual(whole, wanted);
        const hidden = bytes.length - given.data.length;
        equal(whole !== undefined, given.data.length > 0 && shown >= hidden);
        deepEqual(encode(writeRequest, given), bytes);
      }),
    );
  });

  test("is not used for what the generated code refuses, or reads in another way", () => {
    fc.assert(
      fc.property(message, fc.uint8Array({ maxLength: 12 }), fc.nat(), cuts, (given, junk, at, lengths) => {
        const good = encode(WriteRequest, given);
        const where = at % (good.length + 1);
        const bytes = Buffer.concat([good.subarray(0, where), junk, good.subarray(where)]);
        const whole = inParts(bytes, bytes.length, lengths);
        if (whole)
          deepEqual(
            whole,
            attempt(() => decode(WriteRequest, bytes)),
          );
      }),
      { numRuns: 2_000 },
    );
  });
});
