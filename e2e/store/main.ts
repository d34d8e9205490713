/** `npm run store:kill -- --rounds 200 --mode roomy`: kill -9 during concurrent uploads, as often as requested. */
import { parseArgs } from "node:util";
import { modes, runRounds } from "./rounds.ts";

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { rounds: { type: "string" }, mode: { type: "string" }, seed: { type: "string" } },
  });
  const rounds = Number(values.rounds ?? 200);
  const seed = values.seed ?? String(Date.now() % 2 ** 31);
  const say = (line: string): void => console.log(line);
  for (const mode of modes.filter(({ name }) => values.mode === undefined || name === values.mode)) {
    say(`${mode.name}: ${rounds} rounds, seed ${seed}`);
    const { acknowledged, checked, problems } = await runRounds(mode, { rounds, seed, say });
    say(`${mode.name}: ${acknowledged} acknowledged, ${checked} read and compared, ${problems.length} problems`);
    for (const problem of problems) say(`  ${problem}`);
    if (problems.length > 0) process.exitCode = 1;
  }
}

if (import.meta.main) await main();
