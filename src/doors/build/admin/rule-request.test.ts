import { deepEqual, throws } from "node:assert/strict";
import { test } from "node:test";
import { HttpRefusal } from "#doors/build/http/refusal.ts";
import { parseRule } from "./rule-request.ts";

const now = Date.parse("2026-03-01T12:00:00Z");
const why = "no reason given";

const rows: readonly (readonly [string, object])[] = [
  ["principal=anna", { kind: "principal", principal: "anna", untilMs: now, why }],
  [
    "principal=anna&last=2h&why=lost",
    { kind: "principal", principal: "anna", fromMs: now - 7_200_000, untilMs: now, why: "lost" },
  ],
  ["space=gradle", { kind: "time", space: "gradle", untilMs: now, why }],
  ["space=ac/sha256&name=abc/3", { kind: "key", space: "ac/sha256", name: "abc/3", untilMs: now, why }],
  ["all=yes&until=2026-02-01T00:00:00Z", { kind: "time", untilMs: Date.parse("2026-02-01T00:00:00Z"), why }],
];

for (const [query, rule] of rows)
  test(`${query} revokes what it says`, () => deepEqual(parseRule(new URLSearchParams(query), now), rule));

for (const query of [
  "",
  "all=no",
  "name=x",
  "principal=a&space=b",
  "all=yes&last=soon",
  "all=yes&until=then",
  "all=yes&last=1h&from=2026-01-01",
])
  test(`"${query}" is refused: nothing is revoked by mistake`, () =>
    throws(() => parseRule(new URLSearchParams(query), now), HttpRefusal));
