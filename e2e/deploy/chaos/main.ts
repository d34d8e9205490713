/**
 * `npm run deploy:chaos -- [--scenario NAME] [--rounds N] [--seed N]`: releases to real agents while agents, the node
 * and the database are killed, disks fill up and clocks are wrong. Exit code 1: something that must hold did not.
 */
import { parseArgs } from "node:util";
import { Random } from "#base/random.ts";
import { scenarios } from "./scenarios.ts";

const { values } = parseArgs({
  options: {
    scenario: { type: "string", default: "all" },
    rounds: { type: "string", default: "5" },
    seed: { type: "string", default: String(Date.now()) },
  },
});
const chosen = scenarios.filter(({ name }) => values.scenario === "all" || values.scenario === name);
if (chosen.length === 0)
  throw new Error(`there is no scenario ${values.scenario}: ${scenarios.map(({ name }) => name).join(", ")}`);
for (const { name, about, run } of chosen) {
  console.log(`${name}: ${about} (seed ${values.seed})`);
  const random = new Random(`${values.seed}:${name}`);
  const said = await run({ random, rounds: Number(values.rounds), say: (line) => console.log(line) });
  if (typeof said === "string") console.log(`  skipped: ${said}`);
  else {
    for (const violation of said) console.log(`  VIOLATION ${violation}`);
    console.log(`${name}: ${said.length} violations`);
    if (said.length > 0) process.exitCode = 1;
  }
}
process.exit();
