/** What expressions mean, as a table of our own; the number is that of the semantic in docs/reference/ci.md. */
import { deepEqual, equal, match, throws } from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { availability } from "./availability.ts";
import { evaluate } from "./evaluate.ts";
import { readJson, writeJson } from "./json.ts";
import { parseExpression } from "./parse.ts";
import { type Dictionary, numberText, type PlainValue, plainOf, valueOf } from "./value.ts";

const contexts = valueOf({
  github: { ref: "refs/heads/main", event: { labels: [{ name: "bug" }, { colour: "red" }, { name: "Docs" }] } },
  env: { Path: "a" },
  list: [10, 20, 30],
}) as Dictionary;

const value = (text: string): PlainValue =>
  plainOf(evaluate(parseExpression(text, availability(["github", "env", "list"])), { contexts }));

const table: Readonly<Record<string, readonly (readonly [expression: string, expected: PlainValue])[]>> = {
  "CI-21: false, 0, NaN, '' and null are falsy, and && and || return an operand": [
    ["!false && !0 && !-0 && !NaN && !'' && !null", true],
    ["'' || 'other'", "other"],
    ["'a' && 'b'", "b"],
    ["0 && 'b'", 0],
  ],
  "CI-22: == compares loosely, by numbers across types": [
    ["true == 'true'", false],
    ["true == '1'", true],
    ["'' == null", true],
    ["'0xff' == 255", true],
    ["NaN == NaN", false],
    ["github.event == github.event", true],
  ],
  "CI-23: texts compare without case, but a dotless ı is no I": [
    ["'MAIN' == 'main'", true],
    ["'ı' == 'I'", false],
    ["'straße' == 'STRASSE'", false],
    ["'b' > 'A'", true],
  ],
  "CI-24: properties are found in any case, and what is missing is null": [
    ["GITHUB.REF", "refs/heads/main"],
    ["github.nothing.at.all", null],
    ["list[1.9]", 20],
    ["list['2']", 30],
    ["list[-1]", null],
  ],
  "CI-25: * takes what each item has": [
    ["join(github.event.labels.*.name, '+')", "bug+Docs"],
    ["list.*", [10, 20, 30]],
  ],
  "CI-27: numbers become text with 15 digits": [
    ["format('{0}', 0.1)", "0.1"],
    ["format('{0}', 123456789012345678)", "1.23456789012346E+17"],
    ["format('{0}', 0.000001)", "1E-06"],
    ["format('{0} {1}', null, true)", " true"],
    ["format('{0}', list)", "Array"],
  ],
  "CI-28: format knows braces, join and contains know lists": [
    ["format('{{{0}}}', 'x')", "{x}"],
    ["format('a''b''c{0}', 'd')", "a'b'cd"],
    ["join('scalar')", "scalar"],
    ["contains(list, '20')", true],
  ],
  "CI-29: JSON there and back, and case": [
    ['fromJSON(\'{"2":1,"1":2}\')', { 1: 2, 2: 1 }],
    ["case(false, fromJSON('broken'), 'lazy')", "lazy"],
    ["toJSON(list)", "[\n  10,\n  20,\n  30\n]"],
  ],
};

describe("expressions", () => {
  for (const [name, cases] of Object.entries(table))
    test(name, () => {
      for (const [expression, expected] of cases) deepEqual(value(expression), expected, expression);
    });

  test("CI-24: env is found in its own case only", () => {
    const env = new (contexts.constructor as typeof Dictionary)([["Path", "a"]], { caseSensitive: true });
    equal(env.get("PATH"), undefined);
    equal(env.get("Path"), "a");
  });

  test("CI-26: only single quotes are quotes", () => {
    throws(() => value('"text"'), /Unexpected symbol: '"text"'/);
  });

  test("CI-29: keys keep their order, even those that look like numbers", () => {
    equal(writeJson(readJson('{"b":1,"2":2,"1":3}')), '{\n  "b": 1,\n  "2": 2,\n  "1": 3\n}');
  });

  test("CI-31: an expression that makes too much is stopped", () => {
    const grow = (inner: string): string => `format('{0}{0}{0}{0}{0}{0}{0}{0}{0}{0}', ${inner})`;
    const bomb = Array.from({ length: 9 }).reduce<string>((text) => grow(text), "'0123456789'");
    throws(() => value(bomb), /The maximum allowed memory size was exceeded/);
    throws(() => value(`${"(".repeat(60)}1${")".repeat(60)}`), /Exceeded max expression depth 50/);
    throws(() => value(`'${"x".repeat(22_000)}'`), /Exceeded max expression length 21000/);
    throws(() => readJson("[".repeat(200_000)), /nested more than 100 levels/);
  });

  test("CI-27: a number's text is the number again, as far as 15 digits go", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, min: -1e300, max: 1e300 }), (number) => {
        const text = numberText(number);
        const back = Number(text);
        match(text, /^-?\d+(\.\d+)?(E[+-]\d{2,3})?$/);
        return number === 0 ? back === 0 : Math.abs(back - number) <= Math.abs(number) * 1e-14;
      }),
    );
  });

  test("JSON text is read as JSON.parse reads it", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (json) => {
        deepEqual(JSON.parse(JSON.stringify(plainOf(readJson(JSON.stringify(json))))), unify(json));
      }),
      { numRuns: 200 },
    );
  });
});

/** Keys that differ in case only are one key. */
function unify(json: unknown): unknown {
  return JSON.parse(JSON.stringify(plainOf(valueOf(json as PlainValue)))) as unknown;
}
