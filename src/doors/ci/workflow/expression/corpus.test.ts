/** The cross-language cases of others, where they are: MILLRACE_CORPORA names the folder. Every one counts. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, test } from "node:test";
import { availability } from "./availability.ts";
import { evaluate } from "./evaluate.ts";
import { EvaluationFault } from "./functions.ts";
import { readJson, writeJson } from "./json.ts";
import { parseExpression, SyntaxFault } from "./parse.ts";
import { Dictionary, kindOf, type Value } from "./value.ts";

const folder = join(process.env["MILLRACE_CORPORA"] ?? "", "expressions");
const isThere = process.env["MILLRACE_CORPORA"] !== undefined && existsSync(folder);
const skip = isThere ? false : "needs corpora: MILLRACE_CORPORA names no folder with expressions/*.json";

type Expected = { readonly phase: string; readonly text: string } | { readonly kind: string; readonly value: Value };
type Case = { readonly expression: string; readonly contexts: Dictionary; readonly expected: Expected };

describe("the expression cases of others", { skip }, () => {
  const files = isThere ? readdirSync(folder).filter((name) => name.endsWith(".json")) : [];
  for (const file of files)
    for (const [index, item] of casesIn(join(folder, file)).entries())
      test(`${basename(file, ".json")} ${index + 1}: ${JSON.stringify(item.expression.slice(0, 80))}`, () =>
        check(item));

  test("all 1,020 of them were there", () => {
    const count = files.reduce((sum, file) => sum + casesIn(join(folder, file)).length, 0);
    ok(count >= 1020, `${count} cases`);
  });
});

function check({ expression, contexts, expected }: Case): void {
  const outcome = run(expression, contexts);
  if ("phase" in expected) {
    ok("phase" in outcome, `expected an error: ${expected.text}`);
    equal(outcome.phase, expected.phase);
    ok(outcome.text.includes(expected.text), `${outcome.text}\nlacks\n${expected.text}`);
  } else {
    ok("kind" in outcome, `unexpected error: ${"text" in outcome ? outcome.text : ""}`);
    deepEqual({ ...outcome, value: writeJson(outcome.value) }, { ...expected, value: writeJson(expected.value) });
  }
}

function run(expression: string, contexts: Dictionary): Expected {
  try {
    const names = [...contexts.entries()].map(([key]) => key);
    const value = evaluate(parseExpression(expression, availability(names)), { contexts });
    return { kind: kindOf(value), value };
  } catch (error) {
    if (error instanceof SyntaxFault) return { phase: error.phase, text: error.message };
    if (error instanceof EvaluationFault) return { phase: "evaluation", text: error.message };
    throw error;
  }
}

function casesIn(path: string): Case[] {
  const groups = readJson(readFileSync(path, "utf8")) as Dictionary;
  return [...groups.values()].flatMap((group) => (group as readonly Dictionary[]).map((raw) => caseOf(raw)));
}

function caseOf(raw: Dictionary): Case {
  const error = raw.get("err") as Dictionary | undefined;
  const result = raw.get("result") as Dictionary | undefined;
  return {
    expression: raw.get("expr") as string,
    contexts: (raw.get("contexts") as Dictionary | undefined) ?? new Dictionary(),
    expected: error
      ? { phase: error.get("kind") as string, text: error.get("value") as string }
      : { kind: result?.get("kind") as string, value: result?.get("value") ?? null },
  };
}
