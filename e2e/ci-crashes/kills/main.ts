/** `npm run ci:kills -- --kills 100 [--seed N]`: random cruelties over a workflow of 20 steps. */
import { parseArgs } from "node:util";
import { Random } from "#base/random.ts";
import { cruelties, playKills } from "./play.ts";

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "100" },
    seed: { type: "string", default: "1" },
    steps: { type: "string", default: "20" },
  },
});
const random = new Random(Number(values.seed));
const began = performance.now();
await playKills({
  steps: Number(values.steps),
  cruelties: Array.from({ length: Number(values.kills) }, () => random.pick(cruelties)),
  seed: Number(values.seed),
  note: (line) => process.stdout.write(`${((performance.now() - began) / 1_000).toFixed(0)} s  ${line}\n`),
});
process.stdout.write("no finished step and no effect was repeated\n");
process.exit(0);
