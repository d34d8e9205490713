import { equal } from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { referencePages } from "./reference.ts";

for (const { path, content } of referencePages())
  test(`${path} says what the program does`, () => {
    const written = readFileSync(join(import.meta.dirname, "..", "..", path), "utf8");
    equal(written, content, `to repair: node bin/node.js src/cli/reference.ts`);
  });

test("every code in fault.ts is in the reference", () => {
  const source = readFileSync(new URL(import.meta.resolve("#base/fault.ts")), "utf8");
  const declared = [...(source.split("export type FaultFacts")[0] ?? "").matchAll(/^ {2}\| "([a-z-]+)"/gm)].map(
    ([, code]) => code ?? "",
  );
  const page = referencePages().find(({ path }) => path.endsWith("errors.md"))?.content ?? "";
  equal(declared.length, 8);
  for (const code of declared) equal(page.includes(`| \`${code}\` |`), true, code);
});
