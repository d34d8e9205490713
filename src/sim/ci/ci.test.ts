/** The CI door in a simulated storm. `npm run ci:sim` plays many; e2e/ci-crashes/simulated.test.ts hunts mutants. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { ciMutants } from "./mutants.ts";
import { runCiSeed } from "./run.ts";

const src = join(import.meta.dirname, "..", "..");

describe("the CI door in a storm", () => {
  test("keeps its promises, and a seed is the same storm each time", async () => {
    const [first, again] = [await runCiSeed(3), await runCiSeed(3)];
    equal(first.violation, undefined);
    deepEqual(again, first);
    ok(first.tally.steps > 0 && first.tally.kills > 0, JSON.stringify(first.tally));
  });

  for (const { name, edits } of ciMutants)
    test(`${name}: the guards are at the places that the mutant changes`, () => {
      for (const { file, find } of edits)
        equal(readFileSync(join(src, file), "utf8").split(find).length, 2, `${file}: ${find}`);
    });
});
