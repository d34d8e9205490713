import { deepEqual } from "node:assert/strict";
import { test } from "node:test";
import { judgeReads } from "./bazel-reads.ts";

const bytesField = (number: number, value: Uint8Array | string): Buffer => {
  const data = Buffer.from(value);
  return Buffer.concat([Buffer.from([number * 8 + 2, data.length]), data]);
};
const numberField = (number: number, value: number): Buffer => Buffer.from([number * 8, value]);

const readMethod = "google.bytestream.ByteStream/Read";

function noted(name: string, { offset = 0, bytes = 0, status = 0 }, method = readMethod): Buffer {
  const request = Buffer.concat([bytesField(1, name), numberField(2, offset)]);
  return entryOf(Buffer.concat([bytesField(1, request), numberField(2, 1), numberField(3, bytes)]), status, method);
}

/** One call as Bazel records it: small enough for lengths of one byte. */
function entryOf(read: Buffer, status: number, method = readMethod): Buffer {
  const entry = [bytesField(2, numberField(1, status)), bytesField(3, method), bytesField(4, bytesField(5, read))];
  const message = Buffer.concat(entry);
  return Buffer.concat([Buffer.from([message.length]), message]);
}

test("of Bazel's downloads, too much and too little are reported, and nothing else", () => {
  const well = [
    noted("blobs/a/123", { bytes: 123 }),
    noted("blobs/b/123", { bytes: 123, status: 14 }),
    noted("blobs/b/123", { offset: 123 }),
    noted("blobs/c/41", { bytes: 41, status: 1 }),
    noted("blobs/c/41", { bytes: 41 }),
    noted("blobs/d/9", { bytes: 99 }, "somebody.Else/Read"),
    entryOf(Buffer.of(), 14), // the network was gone before it had asked
  ];
  const cutOff = noted("blobs/e/5", { bytes: 99 }).subarray(0, 20);
  deepEqual(judgeReads(Buffer.concat([...well, cutOff])), { reads: 5, resumed: 1, calledOff: 1, violations: [] });
  const wrong = [
    noted("blobs/a/100", { offset: 100, bytes: 100 }),
    noted("blobs/b/100", { bytes: 99 }),
    noted("blobs/c/100", { offset: 50, bytes: 51, status: 14 }),
    entryOf(numberField(3, 7), 0),
  ];
  deepEqual(judgeReads(Buffer.concat(wrong)).violations, [
    "blobs/a/100 from 100 on gave 100 bytes, with status 0",
    "blobs/b/100 from 0 on gave 99 bytes, with status 0",
    "blobs/c/100 from 50 on gave 51 bytes, with status 14",
    "undefined from 0 on gave 7 bytes, with status 0",
  ]);
});
