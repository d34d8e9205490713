/** Each of the 72 numbered semantics of docs/reference/ci.md has a test whose name begins with its number. */
import { deepEqual } from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const root = join(import.meta.dirname, "../../..");
const count = 72;

/** The numbers in the names of a file's tests: `"CI-3, CI-5: ..."`. */
function numbersIn(text: string): readonly number[] {
  const names = text.matchAll(/["`](CI-\d+(?:, CI-\d+)*):/g);
  return [...names].flatMap(([, numbers = ""]) => [...numbers.matchAll(/\d+/g)].map(Number));
}

test("every numbered semantic has a test of its own", () => {
  const files = globSync(["src/doors/ci/**/*.test.ts", "e2e/ci*/*.test.ts"], { cwd: root });
  const tested = new Set(files.flatMap((file) => numbersIn(readFileSync(join(root, file), "utf8"))));
  const all = Array.from({ length: count }, (_, at) => at + 1);
  deepEqual(
    all.filter((number) => !tested.has(number)),
    [],
  );
});
