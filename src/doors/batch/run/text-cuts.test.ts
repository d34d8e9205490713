import { deepEqual, equal, ok } from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import fc from "fast-check";
import { findCuts, writePiece, type CutWish } from "./text-cuts.ts";

const folder = await mkdtemp(join(tmpdir(), "millrace-cuts-"));
after(() => rm(folder, { recursive: true, force: true }));
const path = join(folder, "text");

async function cutsOf(text: string, everyBytes: number, rows: CutWish["rows"]) {
  await writeFile(path, text);
  const { head, at } = await findCuts({ path, everyBytes, rows });
  const borders = [0, ...at, Buffer.byteLength(text)];
  const pieces: string[] = [];
  for (const [i, to] of borders.slice(1).entries()) {
    const as = join(folder, "piece");
    await writePiece({ path, head, from: borders[i] ?? 0, to, as });
    pieces.push(await readFile(as, "utf8"));
    await rm(as);
  }
  return { head, at, pieces };
}

const csv = (headLines = 1): CutWish["rows"] => ({ by: "quoted", quote: '"', delimiter: ",", headLines });

describe("a text file", () => {
  test("is cut at the ends of lines, and each piece has the head", async () => {
    const { pieces, head } = await cutsOf("a,b\n1,2\n3,4\n5,6\n7,8\n", 6, csv());
    equal(head, 4);
    deepEqual(pieces, ["a,b\n1,2\n3,4\n", "a,b\n5,6\n7,8\n"]);
  });

  test("is not cut within quotes", async () => {
    const { pieces } = await cutsOf('a\n"x\n\n\n""y\n"\nz\nw\n', 3, csv());
    deepEqual(pieces, ['a\n"x\n\n\n""y\n"\n', "a\nz\nw\n"]);
  });

  test("with quotes that readers differ about, or that stay open, is not cut at all", async () => {
    for (const text of ['5" pipe,1\nx\n"a\nb"\n', '"a"b\nc\nd\n', 'a\nb\n"open\nc\n', ' "a\nb"\nc\n'])
      deepEqual((await cutsOf(text, 2, csv(0))).at, [], text);
  });

  test("of lines is cut at any newline", async () => {
    const { pieces } = await cutsOf('one "\ntwo\nthree\nfour\n', 6, { by: "lines" });
    deepEqual(pieces, ['one "\ntwo\n', "three\nfour\n"]);
  });

  test("of values of JSON is cut between them, however they are laid out", async () => {
    const values = '{"a": [{\n}, {\n}]}\n{"a":\n1}\r\n\n{"a": "}\\n{"}\n{"a": 3}\n';
    const { pieces } = await cutsOf(values, 10, { by: "values" });
    deepEqual(pieces.join(""), values);
    deepEqual(pieces.length, 3);
    deepEqual((await cutsOf('[{"a": 1},\n{"a": 2}\n,\n{"a": 3}]', 5, { by: "values" })).at, []);
  });

  test("has all its rows in its pieces, once and in order", async () => {
    const value = fc.string({ unit: fc.constantFrom("a", ",", "\n", '"', "\r", "ä") });
    const rows = fc.array(fc.tuple(value, fc.boolean()), { minLength: 1, maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(rows, fc.integer({ min: 1, max: 40 }), async (all, everyBytes) => {
        const lines = all.map(([one, isQuoted]) =>
          isQuoted ? `"${one.replaceAll('"', '""')}"\n` : `${one.replaceAll(/[\n\r",]/g, "")}x\n`,
        );
        const { pieces, at } = await cutsOf(`head\n${lines.join("")}`, everyBytes, csv());
        ok(pieces.every((piece) => piece.startsWith("head\n")));
        equal(pieces.map((piece) => piece.slice(5)).join(""), lines.join(""));
        const starts = new Set(lines.map((_, i) => Buffer.byteLength(`head\n${lines.slice(0, i).join("")}`)));
        ok(at.every((one) => starts.has(one)));
      }),
      { numRuns: 60 },
    );
  });
});
