/** A few seeds of the simulation, so that every test run makes sure that it runs, is repeatable and passes. */
import { equal } from "node:assert/strict";
import { test } from "node:test";
import { runSeed } from "./run.ts";

const first = Number(process.env["SIM_SEED"] ?? 1);
const count = 50;

test(`${count} seeds from ${first} keep K1 to K12 (replay one: SIM_SEED=<seed> npm run sim)`, async (t) => {
  for (let seed = first; seed < first + count; seed += 1)
    await t.test(`SIM_SEED=${seed}`, async () => {
      const { violation, hash } = await runSeed(seed);
      equal(violation?.message, undefined);
      // Every tenth is run again, and must give the same trace.
      if (seed % 10 === 0) equal((await runSeed(seed)).hash, hash);
    });
});
