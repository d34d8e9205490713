/**
 * `npm run ci:sim -- --seeds 500`: the CI door through that many storms in virtual time. A seed that fails is named,
 * and `--from SEED --seeds 1` plays it again.
 */
import { parseArgs } from "node:util";
import type { Tally } from "./court.ts";
import { runCiSeed } from "./run.ts";

const { values } = parseArgs({
  options: { from: { type: "string", default: "1" }, seeds: { type: "string", default: "100" } },
});

const began = performance.now();
const from = Number(values.from);
const total: Partial<Tally> = {};
let played = 0;
for (let seed = from; seed < from + Number(values.seeds); seed += 1) {
  const { violation, tally } = await runCiSeed(seed);
  played += 1;
  for (const [name, count] of Object.entries(tally))
    total[name as keyof Tally] = (total[name as keyof Tally] ?? 0) + count;
  if (!violation) continue;
  process.stdout.write(`FAILED seed ${seed}: ${violation.message}\n`);
  process.exitCode = 1;
  break;
}
const seen = Object.entries(total).map(([name, count]) => `${count} ${name}`);
process.stdout.write(`${played} seeds in ${((performance.now() - began) / 1_000).toFixed(1)} s: ${seen.join(", ")}\n`);
