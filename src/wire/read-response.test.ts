import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import { ReadResponse } from "./generated/google/bytestream/bytestream.ts";
import { decode, encode } from "./message.ts";
import { readResponseHeadBytesMax, writeReadResponseHead } from "./read-response.ts";

test("a chunk that was read in place is the message that the generated code writes", () => {
  for (const size of [0, 1, 127, 128, 16_383, 16_384, 65_536, 2 ** 21 - 1, 2 ** 21, 5_000_000]) {
    const headroom = 9 + readResponseHeadBytesMax;
    const bytes = Buffer.alloc(headroom + size, 7);
    const start = writeReadResponseHead(bytes, headroom, size);
    equal(start >= 9, true);
    const message = bytes.subarray(start);
    equal(Buffer.compare(message, encode(ReadResponse, { data: bytes.subarray(headroom) })), 0);
    deepEqual(decode(ReadResponse, message).data.length, size);
  }
});
