/** The page that tells authors what they may use where is held against what the compiler allows. */
import { deepEqual, ok } from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { places } from "./places.ts";

const page = readFileSync(join(import.meta.dirname, "../../../../../docs/reference/ci.md"), "utf8");

const words = (text: string): readonly string[] => text.split(" ").filter((word) => word !== "");

test("CI-32: docs/reference/ci.md lists contexts and functions as they are allowed", () => {
  const table = /<!-- places:begin .*?-->\n(.*?)<!-- places:end -->/s.exec(page)?.[1] ?? "";
  const rows = table
    .trim()
    .split("\n")
    .slice(2)
    .map((row) => row.split("|").map((cell) => cell.trim()));
  ok(rows.length > 10);
  for (const [, name = "", , contexts = "", functions = ""] of rows) {
    const place = places[name as keyof typeof places];
    ok(place, `no place is called ${name}`);
    deepEqual([...place.contexts].toSorted(), [...words(contexts)].toSorted(), name);
    deepEqual(place.functions.map((shape) => shape.name).toSorted(), [...words(functions)].toSorted(), name);
  }
  const told = new Set(rows.map(([, name = ""]) => JSON.stringify(places[name as keyof typeof places])));
  for (const [name, place] of Object.entries(places))
    if (name !== "actionOutput") ok(told.has(JSON.stringify(place)), `${name} is missing`);
});
