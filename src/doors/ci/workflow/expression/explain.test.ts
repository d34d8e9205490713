import { deepEqual, equal, match } from "node:assert/strict";
import { test } from "node:test";
import { places } from "#doors/ci/workflow/schema/places.ts";
import { conditionLines, explain, expressionText, mapTexts } from "./explain.ts";
import { parseExpression } from "./parse.ts";
import { type Dictionary, valueOf } from "./value.ts";

const contexts = valueOf({
  github: { ref: "refs/heads/side", event: { commits: [{ id: 1 }, { id: 2 }], action: "opened" } },
  needs: { lint: { result: "success", outputs: {} } },
}) as Dictionary;
const functions = new Map([
  ["success", () => false],
  ["always", () => true],
]);
const scope = { contexts, functions };
const lines = (text: string): readonly string[] =>
  conditionLines(
    explain(parseExpression(text, places.jobIf), scope, (name) => (name === "success" ? "a note" : undefined)),
  );

test("each part of a condition is shown with its value", () => {
  deepEqual(lines("always() && (github.ref == 'refs/heads/main' || contains(github.event.action, 'x'))"), [
    "always() && (github.ref == 'refs/heads/main' || contains(github.event.action, 'x')) → false",
    "  always() → true",
    "  github.ref == 'refs/heads/main' || contains(github.event.action, 'x') → false",
    "    github.ref == 'refs/heads/main' → false",
    '      github.ref → "refs/heads/side"',
    "    contains(github.event.action, 'x') → false",
    '      github.event.action → "opened"',
  ]);
});

test("what stands behind the part that decided is not evaluated", () => {
  deepEqual(lines("success() && github.ref != ''"), [
    "success() && github.ref != '' → false",
    "  success() → false (a note)",
    "  github.ref != '' → not evaluated",
  ]);
});

test("an error is shown where it happened", () => {
  const [whole, inner] = lines("!fromJSON('{')");
  match(whole ?? "", /^!fromJSON\('\{'\) → Error parsing fromJson/);
  match(inner ?? "", /^ {2}fromJSON\('\{'\) → Error parsing fromJson/);
});

test("expressions are written as they could have been", () => {
  for (const text of ["github.event.commits.*.id", "needs['lint'].result", "!(1 < 2)", "case(true, 'it''s', 0x1f)"])
    equal(expressionText(parseExpression(text, places.jobIf) as never), text);
});

test("lists and objects are named, long texts cut, and every text can be masked", () => {
  equal(explain(parseExpression("github.event.commits", places.jobIf), scope).value, "Array");
  const long = explain(parseExpression(`format('${"x".repeat(999)}')`, places.jobIf), scope);
  equal([long.value?.length, long.expression.length].join(), "300,300");
  const masked = mapTexts(explain(parseExpression("github.ref == 'refs/heads/side'", places.jobIf), scope), (text) =>
    text.replaceAll("side", "***"),
  );
  equal(JSON.stringify(masked).includes("side"), false);
});
