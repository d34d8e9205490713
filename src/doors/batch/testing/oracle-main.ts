/** `node bin/node.js src/doors/batch/testing/oracle-main.ts [count] [seed]`: generated queries, staged against single. */
import { Random } from "#base/random.ts";
import { judgeQueries } from "./judge.ts";

const [count = "2000", seed = "1"] = process.argv.slice(2);
const startedMs = performance.now();
const report = await judgeQueries({
  random: new Random(`oracle ${seed}`),
  count: Number(count),
  log: (line) => console.log(line),
});
console.log(JSON.stringify({ seed, ...report, seconds: Math.round((performance.now() - startedMs) / 1_000) }));
process.exitCode = report.wrong === 0 ? 0 : 1;
