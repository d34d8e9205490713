import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import { isRevoked, notesOfRule, ruleOfNotes, type TrustRule } from "./trust.ts";

const key = { tenant: "mill", space: "ac/sha256/main", name: "abc/3" };
const entry = { digest: "", version: 1, principal: "ci", atMs: 1_000 };
const why = "";

test("T1: a rule revokes what it names, up to the time it names", () => {
  const cases: readonly (readonly [string, TrustRule, boolean])[] = [
    ["who wrote it", { kind: "principal", principal: "ci", untilMs: 1_000, why }, true],
    ["somebody else", { kind: "principal", principal: "cid", untilMs: 1_000, why }, false],
    ["who wrote it, but before", { kind: "principal", principal: "ci", untilMs: 999, why }, false],
    ["who wrote it, from later on", { kind: "principal", principal: "ci", fromMs: 1_001, untilMs: 2_000, why }, false],
    ["everything", { kind: "time", untilMs: 1_000, why }, true],
    ["everything older", { kind: "time", untilMs: 999, why }, false],
    ["everything there", { kind: "time", space: "ac/sha256/main", untilMs: 1_000, why }, true],
    ["everything elsewhere", { kind: "time", space: "ac/sha256", untilMs: 1_000, why }, false],
    ["this key", { kind: "key", space: key.space, name: key.name, untilMs: 1_000, why }, true],
    ["another key", { kind: "key", space: key.space, name: "abc/4", untilMs: 1_000, why }, false],
  ];
  for (const [what, rule, wanted] of cases) {
    equal(isRevoked([rule], key, entry), wanted, what);
    deepEqual(ruleOfNotes(notesOfRule(rule)), rule, "and is kept as it is");
  }
  equal(isRevoked([], key, entry), false);
});

test("other notes are not a rule", () => {
  for (const notes of [undefined, {}, { rule: "nonsense" }, { rule: '{"kind":"all","untilMs":1}' }, { rule: "3" }])
    equal(ruleOfNotes(notes), undefined);
});
