import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { isFault } from "#base/fault.ts";
import { WriteRequest } from "./generated/google/bytestream/bytestream.ts";
import { decode, encode } from "./message.ts";
import { writeRequest, type WriteInPieces } from "./write-request.ts";

const message = fc.record({
  resourceName: fc.string({ unit: "grapheme", maxLength: 40 }),
  writeOffset: fc.oneof(fc.constant(0), fc.maxSafeNat()),
  finishWrite: fc.boolean(),
  data: fc.uint8Array({ maxLength: 300 }),
});
const cuts = fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 8 });

function cut(bytes: Buffer, lengths: readonly number[]): readonly [Buffer, ...Buffer[]] {
  const pieces: Buffer[] = [];
  for (let at = 0, i = 0; at < bytes.length; i += 1) {
    const end = Math.min(bytes.length, at + (lengths[i % lengths.length] ?? 1));
    pieces.push(bytes.subarray(at, end));
    at = end;
  }
  const [first = bytes, ...more] = pieces;
  return [first, ...more];
}

const attempt = (read: () => WriteRequest): WriteRequest | "refused" => {
  try {
    const { data, ...rest } = read();
    return { ...rest, data: Buffer.from(data) };
  } catch (error) {
    if (!isFault(error, "invalid")) throw error;
    return "refused";
  }
};

const whole = ({ data, ...rest }: WriteInPieces): WriteRequest => ({ ...rest, data: Buffer.concat(data) });

function readCut(bytes: Buffer, lengths: readonly number[]): WriteRequest | "refused" {
  const [first, ...more] = cut(bytes, lengths);
  return attempt(() => whole(writeRequest.readPieces?.(first, more) as WriteInPieces));
}

describe("ByteStream.Write in pieces", () => {
  test("reads what the generated code reads, however it is cut", () => {
    fc.assert(
      fc.property(message, cuts, (given, lengths) => {
        const bytes = encode(WriteRequest, given);
        const wanted = attempt(() => decode(WriteRequest, bytes));
        deepEqual(readCut(bytes, lengths), wanted);
        deepEqual(
          attempt(() => whole(decode(writeRequest, bytes))),
          wanted,
        );
        deepEqual(encode(writeRequest, { ...given, data: [given.data] }), bytes);
      }),
    );
  });

  test("and refuses what it refuses", () => {
    fc.assert(
      fc.property(message, fc.uint8Array({ maxLength: 12 }), fc.nat(), cuts, (given, junk, at, lengths) => {
        const good = encode(WriteRequest, given);
        const where = at % (good.length + 1);
        const bytes = Buffer.concat([good.subarray(0, where), junk, good.subarray(where)]);
        deepEqual(
          readCut(bytes, lengths),
          attempt(() => decode(WriteRequest, bytes)),
        );
      }),
      { numRuns: 2_000 },
    );
  });

  test("copies nothing where the data comes last", () => {
    const bytes = encode(WriteRequest, {
      resourceName: "r",
      writeOffset: 7,
      finishWrite: true,
      data: Buffer.alloc(999),
    });
    const [first, ...more] = cut(bytes, [100]);
    const read = writeRequest.readPieces?.(first, more);
    equal(read?.data.length, more.length + 1);
    equal(read?.data.at(-1), more.at(-1));
  });
});
