/** The checkers work: with any single guard removed, a hunt finds the broken promise. See mutants.ts. */
import { ok } from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { huntMutant, mutants } from "./mutants.ts";

/** Found within seconds, one of each kind of guard; `npm run sim:mutants` hunts them all. */
const slice: ReadonlySet<string> = new Set([
  "durability before reply",
  "leases of owners and executors run out while a machine sleeps",
  "key reuse",
  "double commit",
  "lost requeue",
  "a job waits until its results are published",
]);

const root = join(import.meta.dirname, "..", "..");

describe("a hunt notices a missing guard", () => {
  for (const mutant of mutants) {
    test(`${mutant.name}: the guard is at the place that the mutant changes`, () => {
      const text = readFileSync(join(root, "src", mutant.file), "utf8");
      ok(text.split(mutant.find).length === 2, `the text occurs ${text.split(mutant.find).length - 1} times`);
    });
    if (slice.has(mutant.name))
      test(`${mutant.name}: found`, async () => {
        const { found, what } = await huntMutant(mutant, root, 1_000, true);
        ok(found, what);
      });
  }
});
