import { deepEqual, equal, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import { isFault } from "#base/fault.ts";
import { FrameReader, frameOf, messageBytesMax } from "./frame.ts";

const messages = [
  { op: "a", text: "line\nbreak", note: '{"said":"\\"it\\""}\nand ü' },
  { op: "b", note: "" },
  { op: "c", note: undefined },
  { op: "d", ids: ["ü"] },
];
const bytes = Buffer.concat(messages.map(frameOf));

function readIn(piecesOf: number): readonly unknown[] {
  const reader = new FrameReader();
  // The reader reuses its buffer.
  const shared = Buffer.alloc(piecesOf);
  const starts = Array.from({ length: Math.ceil(bytes.length / piecesOf) }, (_, index) => index * piecesOf);
  return starts.flatMap((at) => {
    const length = bytes.copy(shared, 0, at, at + piecesOf);
    return [...reader.push(shared.subarray(0, length))];
  });
}

describe("messages on a byte stream", () => {
  for (const piecesOf of [1, 7, 64, bytes.length])
    test(`are decoded as they were sent, in pieces of ${piecesOf}`, () => {
      deepEqual(readIn(piecesOf), [messages[0], messages[1], { op: "c" }, messages[3]]);
    });

  test("carry a note unchanged", () => {
    const note = '{"a":"\\"b\\""}';
    const message = { op: "x", note };
    equal(frameOf(message).subarray(4).toString(), `{"op":"x"}\n${note}`);
  });

  for (const text of ["", "{", '{"op":1', "null\nnote"])
    test(`that are no JSON are refused: ${JSON.stringify(text)}`, () => {
      const frame = Buffer.alloc(4 + text.length);
      frame.writeUInt32BE(text.length);
      frame.write(text, 4);
      throws(
        () => [...new FrameReader().push(frame)],
        (error) => isFault(error, "invalid"),
      );
    });

  test("of an impossible length are refused before they have arrived", () => {
    const frame = Buffer.alloc(4);
    frame.writeUInt32BE(messageBytesMax + 1);
    throws(
      () => [...new FrameReader().push(frame)],
      (error) => isFault(error, "invalid"),
    );
    throws(
      () => frameOf({ note: "x".repeat(messageBytesMax) }),
      (error) => isFault(error, "exhausted"),
    );
  });
});
