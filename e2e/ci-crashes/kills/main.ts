/**
 * `npm run ci:kills -- --kills 100 [--seed N]`: random cruelties over a workflow of 20 steps. With `--for 9m` it stops
 * in time and says from where another call goes on (`--from N`).
 */
import { parseArgs } from "node:util";
import { parseDurationMs } from "#base/units.ts";
import { Random } from "#base/random.ts";
import { cruelties, playKills } from "./play.ts";

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "100" },
    seed: { type: "string", default: "1" },
    steps: { type: "string", default: "20" },
    from: { type: "string", default: "0" },
    for: { type: "string", default: "1d" },
  },
});
const random = new Random(Number(values.seed));
const began = performance.now();
const all = Array.from({ length: Number(values.kills) }, () => random.pick(cruelties));
const from = Number(values.from);
const done = await playKills({
  steps: Number(values.steps),
  cruelties: all.slice(from),
  seed: Number(values.seed) + from,
  note: (line) => process.stdout.write(`${((performance.now() - began) / 1_000).toFixed(0)} s  ${line}\n`),
  forMs: parseDurationMs(values.for) ?? 0,
});
process.stdout.write(`${done} kills: no finished step and no effect was repeated\n`);
if (from + done < all.length) process.stdout.write(`go on with --from ${from + done}\n`);
process.exit(0);
