/** The simulation of the CI door notices a missing guard: a few of `node bin/node.js src/sim/ci/mutants.ts`. */
import { ok } from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import { ciMutants, huntCiMutant } from "#sim/ci/mutants.ts";

const root = join(import.meta.dirname, "..", "..");
const slice: ReadonlySet<string> = new Set([
  "resume from a stale checkpoint",
  "approval counted twice",
  "an effect that was begun and never ended may be done again",
]);

describe("a storm over the CI door notices a missing guard", { timeout: 120_000 }, () => {
  for (const mutant of ciMutants)
    if (slice.has(mutant.name))
      test(mutant.name, async () => {
        const { found, what } = await huntCiMutant(mutant, root, 60);
        ok(found, what);
      });
});
