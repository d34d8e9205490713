// Chaos on real processes: nodes and executors are started, killed, suspended and cut off from their database, while
// submitters go on. Afterwards the log in PostgreSQL is compared with all answers. docs/how-to/chaos.md says how to use
// it.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startPostgres } from "#testing/postgres.ts";
import { line, table, type Figures } from "./figures.ts";
import { type Options, readOptions } from "./options.ts";
import { play } from "./play.ts";
import { Processes } from "./processes.ts";
import { database } from "./scenario-database.ts";
import { handover } from "./scenario-handover.ts";
import { kill } from "./scenario-kill.ts";
import { stop } from "./scenario-stop.ts";
import { takeover } from "./scenario-takeover.ts";
import type { Scenario } from "./scenario.ts";
import { soak } from "./soak.ts";

const scenarios: readonly Scenario[] = [kill, stop, database, takeover, handover];

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2));
  const chosen = choose(options);
  const postgres = await startPostgres();
  if (postgres.skip !== false) throw new Error(postgres.skip);
  const processes = new Processes();
  const results: { readonly scenario: string; readonly figures: Figures; readonly violations: readonly string[] }[] =
    [];
  try {
    for (const scenario of chosen) {
      console.log(`\nchaos ${scenario.name}: ${scenario.about} (seed ${options.seed})`);
      const ports = { processes, postgres: postgres.server() };
      const { figures, violations } = await play(scenario, ports, playOptions(scenario, options));
      results.push({ scenario: scenario.name, figures, violations });
      console.log(table(figures));
      for (const violation of violations.slice(0, 50)) console.log(`  VIOLATION ${violation}`);
      console.log(`chaos ${scenario.name}: ${line(figures)}`);
    }
  } finally {
    await processes.close();
    await postgres.stop();
  }
  if (options.jsonFile !== undefined)
    writeFileSync(options.jsonFile, `${JSON.stringify({ seed: options.seed, results }, undefined, 2)}\n`);
  if (results.some(({ violations }) => violations.length > 0)) process.exitCode = 1;
}

function choose({ scenario: wanted, smoke, soakMinutes }: Options): readonly Scenario[] {
  if (soakMinutes !== undefined) return [soak];
  const named = scenarios.filter(({ name }) => wanted === "all" || wanted === name);
  if (named.length === 0)
    throw new Error(`there is no scenario ${wanted}; there are ${scenarios.map(({ name }) => name).join(", ")}`);
  return smoke ? named.filter(({ rounds }) => rounds.smoke > 0) : named;
}

function playOptions(scenario: Scenario, { rounds, smoke, soakMinutes, seed, keep }: Options) {
  const keepLogsIn = keep ? mkdtempSync(join(tmpdir(), `millrace-chaos-logs-${scenario.name}-`)) : undefined;
  if (keepLogsIn !== undefined) console.log(`logs will be in ${keepLogsIn}`);
  return {
    rounds: rounds ?? (smoke ? scenario.rounds.smoke : scenario.rounds.full),
    forMs: soakMinutes === undefined ? Number.POSITIVE_INFINITY : soakMinutes * 60_000,
    smoke,
    seed,
    keepLogsIn,
    say: (text: string) => console.log(text),
  };
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.on(signal, () => {
    console.log(`chaos: ${signal}, cleaning up`);
    process.exit(130); // children are ended on exit; the database's own guard ends it and removes its files
  });

try {
  await main();
} catch (error) {
  console.error("chaos: failed:", error);
  process.exitCode = 1;
}
// After a failure submitters may still be waiting for an answer that never comes.
process.exit();
