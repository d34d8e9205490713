import { deepEqual, equal, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import { type Dictionary, plainOf, type PlainValue, valueOf } from "#doors/ci/workflow/expression/value.ts";
import { cellName, cellsOf } from "./matrix.ts";

const cells = (matrix: PlainValue): readonly PlainValue[] =>
  cellsOf(valueOf(matrix) as Dictionary).map((cell) => plainOf(cell.matrix));
const labels = (matrix: PlainValue): readonly string[] =>
  cellsOf(valueOf(matrix) as Dictionary).map((cell) => cell.label);

describe("matrix", () => {
  test("CI-15: the first key changes slowest, and names come from the leaves", () => {
    deepEqual(labels({ os: ["a", "b"], node: [1, 2] }), ["a, 1", "a, 2", "b, 1", "b, 2"]);
    deepEqual(labels({ os: [{ name: "x", extra: [true, null, ""] }] }), ["x, true"]);
    equal(cellName("job", "a, 1"), "job (a, 1)");
    equal(cellName("job", ""), "job");
    equal(cellName("j".repeat(200), "x").length, 100);
    equal(cellName("j".repeat(200), "x").endsWith("..."), true);
  });

  test("CI-16, CI-17: exclude comes first, compares loosely and in parts, and knows its keys", () => {
    deepEqual(labels({ os: ["Linux", "mac"], node: [18, 20], exclude: [{ os: "LINUX", node: "18" }] }), [
      "Linux, 20",
      "mac, 18",
      "mac, 20",
    ]);
    deepEqual(labels({ os: ["a", "b"], node: [1, 2], exclude: [{ os: "a" }] }), ["b, 1", "b, 2"]);
    deepEqual(
      labels({
        v: [
          { a: 1, b: 2 },
          { a: 3, b: 2 },
        ],
        exclude: [{ v: { a: 1 } }],
      }),
      ["3, 2"],
    );
    deepEqual(cells({ os: ["a"], exclude: [{ os: "a" }], include: [{ os: "a" }] }), [{ os: "a" }]);
    throws(() => cells({ os: ["a"], exclude: [{ arch: "x" }] }), /'arch' does not match any key/);
    throws(() => cells({ os: ["a"], exclude: [{}] }), /must not be empty/);
  });

  test("CI-18: include extends what it matches, and adds what it does not", () => {
    const fruits: PlainValue = {
      fruit: ["apple", "pear"],
      animal: ["cat", "dog"],
      include: [
        { color: "green" },
        { color: "pink", animal: "cat" },
        { fruit: "apple", shape: "circle" },
        { fruit: "banana" },
        { fruit: "banana", animal: "cat" },
      ],
    };
    deepEqual(cells(fruits), [
      { fruit: "apple", animal: "cat", color: "pink", shape: "circle" },
      { fruit: "apple", animal: "dog", color: "green", shape: "circle" },
      { fruit: "pear", animal: "cat", color: "pink" },
      { fruit: "pear", animal: "dog", color: "green" },
      { fruit: "banana" },
      { fruit: "banana", animal: "cat" },
    ]);
    deepEqual(cells({ include: [{ a: 1 }, { a: 2, b: 3 }] }), [{ a: 1 }, { a: 2, b: 3 }]);
  });

  test("CI-19: an empty vector is wrong, and so are more than 256 jobs, found before they are made", () => {
    throws(() => cells({ a: [] }), /does not contain any values/);
    throws(() => cells({ a: 3 }), /is no list/);
    throws(() => cells({}), /at least one vector/);
    const numbers = Array.from({ length: 1000 }, (_, at) => at);
    equal(cells({ a: numbers.slice(0, 256) }).length, 256);
    throws(() => cells({ a: numbers.slice(0, 257) }), /257 jobs; at most 256/);
    throws(() => cells({ a: numbers, b: numbers, c: numbers, d: numbers }), /at most 256/);
  });
});
