import { equal } from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { isFault } from "#base/fault.ts";
import { KnownTexts } from "./known-texts.ts";
import { Reader } from "./reader.ts";
import { Writer } from "./writer.ts";

/** The text as a field of a message, with the reader at its start. */
function readerOf(text: string): Reader {
  const to = new Writer();
  to.string(10, text);
  const from = new Reader(to.bytes.subarray(0, to.pos));
  from.tag();
  return from;
}

describe("known texts", () => {
  test("are read as they would be without the cache, whatever was read before", () => {
    const known = new KnownTexts();
    const text = fc.oneof(
      fc.string({ unit: "grapheme", maxLength: 80 }),
      fc.constantFrom("", "a", "b", "\u0080", "\u00ff", "é", "tenant-a", "x".repeat(64), "x".repeat(65)),
    );
    fc.assert(
      fc.property(fc.array(text, { maxLength: 20 }), (texts) => {
        for (const one of [...texts, ...texts]) {
          const [from, plain] = [readerOf(one), readerOf(one)];
          equal(known.read(from), plain.string());
          equal(from.pos, plain.pos);
        }
      }),
    );
  });

  test("fail as they would without the cache, whatever was read before", () => {
    const known = new KnownTexts();
    for (const text of ["", "a", "ab"]) known.read(readerOf(text));
    const outcome = (from: Reader, read: (from: Reader) => string): string => {
      try {
        return `${read(from)} ${from.pos}`;
      } catch (error) {
        if (isFault(error, "invalid")) return error.message;
        throw error;
      }
    };
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 90 }), (bytes) => {
        const plain = outcome(new Reader(bytes), (from) => from.string());
        equal(
          outcome(new Reader(bytes), (from) => known.read(from)),
          plain,
        );
      }),
      { numRuns: 1_000 },
    );
  });
});
