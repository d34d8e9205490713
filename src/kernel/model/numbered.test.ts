import { deepEqual, equal } from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { Numbered } from "./numbered.ts";

type Thing = { readonly no: number; readonly turn: number };

describe("Numbered", () => {
  test("finds, counts and lists entries like a Map", () => {
    const no = fc.oneof(fc.nat(300), fc.constantFrom(2 ** 31, 2 ** 31 + 64, 2 ** 40, Number.MAX_SAFE_INTEGER));
    const move = fc.record({ no, what: fc.constantFrom("set", "set", "delete") });
    fc.assert(
      fc.property(fc.array(move, { maxLength: 400 }), (moves) => {
        const things = new Numbered<Thing>();
        const model = new Map<number, Thing>();
        for (const [turn, { no: number, what }] of moves.entries()) {
          if (what === "delete") equal(things.delete(number), model.delete(number));
          else {
            things.set(number, { no: number, turn });
            model.set(number, { no: number, turn });
          }
          equal(things.size, model.size);
          deepEqual(things.get(number), model.get(number));
        }
        const byNo = (a: Thing, b: Thing): number => a.no - b.no;
        deepEqual([...things.values()].toSorted(byNo), [...model.values()].toSorted(byNo));
        for (const number of things.keys()) equal(things.has(number), true);
      }),
    );
  });

  test("an invalid number finds nothing", () => {
    const things = new Numbered<Thing>();
    for (const no of [0, 1, 5, 64]) things.set(no, { no, turn: 0 });
    for (const wrong of [
      5.5,
      -5,
      -59,
      Number.NaN,
      Infinity,
      "5",
      [5],
      5n,
      null,
      undefined,
      {},
      Symbol("5"),
      2 ** 32 + 5,
    ])
      equal(things.get(wrong as number), undefined);
    equal(things.delete("5" as unknown as number), false);
    equal(things.size, 4);
  });

  test("may change while it is iterated", () => {
    const things = new Numbered<Thing>();
    for (let no = 0; no < 130; no += 1) things.set(no, { no, turn: 0 });
    const seen: number[] = [];
    for (const { no } of things.values()) {
      seen.push(no);
      if (no % 2 === 0) things.delete(no + 1);
      if (no === 100) things.set(1_000, { no: 1_000, turn: 1 });
    }
    deepEqual(seen, [...Array.from({ length: 65 }, (_, i) => 2 * i), 1_000]);
  });
});
