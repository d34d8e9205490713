import { deepEqual, equal, ok } from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { boundary, wholeCharacters } from "./characters.ts";
import { Position } from "./position.ts";

describe("a position in the output of a job", () => {
  const tasks = fc.array(fc.nat(5_000), { maxLength: 50 });
  const places = fc.array(fc.tuple(fc.nat(5_000), fc.nat(1_000), fc.nat(1), fc.nat(1e9)), { maxLength: 20 });

  test("is the same after it was text", () => {
    fc.assert(
      fc.property(tasks, places, (whole, open) => {
        const position = Position.start();
        for (const task of whole) position.finish(task);
        for (const [task, token, stream, offset] of open) position.read(task, { token, stream, offset });
        const again = Position.parse(position.text);
        equal(again?.text, position.text);
        for (const task of whole) ok(again?.isWhole(task));
      }),
    );
  });

  test("of a newer attempt starts from the beginning", () => {
    const position = Position.start();
    position.read(7, { token: 3, stream: 0, offset: 100 });
    position.read(7, { token: 3, stream: 1, offset: 10 });
    deepEqual([position.offsetOf(7, 3, 0), position.offsetOf(7, 3, 1), position.offsetOf(7, 4, 0)], [100, 10, 0]);
    position.read(7, { token: 4, stream: 0, offset: 5 });
    deepEqual([position.tokenOf(7), position.offsetOf(7, 4, 0), position.offsetOf(7, 3, 1)], [4, 5, 0]);
    position.finish(7);
    equal(position.text, "1:7:");
  });

  test("has a text of bounded length: what does not fit is shown again, never left out", () => {
    const position = Position.start();
    for (let task = 0; task < 20_000; task += 2) position.finish(task);
    position.read(1, { token: 1, stream: 0, offset: 9 });
    ok(position.text.length <= 3_000);
    const again = Position.parse(position.text);
    deepEqual([again?.isWhole(0), again?.isWhole(19_998), again?.offsetOf(1, 1, 0)], [true, false, 9]);
  });

  test("is refused when it is not one of ours", () => {
    const texts = ["", "2::", "1:", "x", "1:1-99999999999999:", "1::1.2.3", `1:${"1,".repeat(3_000)}:`, "1::1.1.0.1e9"];
    for (const text of texts) equal(Position.parse(text), undefined, text.slice(0, 30));
    fc.assert(fc.property(fc.string(), (text) => void Position.parse(text)));
  });
});

describe("parts of output", () => {
  const partsOf = async (parts: readonly Uint8Array[]): Promise<readonly Uint8Array[]> =>
    await Array.fromAsync(wholeCharacters(ReadableStream.from(parts)));

  test("end between characters, and together are all that was printed", async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "binary" }), fc.nat(20), async (text, length) => {
        const bytes = Buffer.from(text);
        const size = length + 1;
        const cut = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
          bytes.subarray(i * size, (i + 1) * size),
        );
        const parts = await partsOf(cut);
        equal(parts.map((part) => Buffer.from(part).toString()).join(""), bytes.toString());
        ok(Buffer.concat(parts).equals(bytes));
      }),
    );
  });

  test("of bytes that are no text pass as they are", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.uint8Array()), async (parts) => {
        ok(Buffer.concat(await partsOf(parts)).equals(Buffer.concat(parts)));
      }),
    );
    equal(boundary(Uint8Array.from([0x80, 0x80, 0x80, 0x80, 0x80]), 5), 5);
  });
});
