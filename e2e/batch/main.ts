/**
 * Staged answers against those of one process: `npm run batch:judge -- queries [count] [seed]` runs generated queries,
 * `npm run batch:judge -- tpch [scale]` the 22 queries of TPC-H over tables of its shape.
 */
import { Random } from "#base/random.ts";
import { judgeQueries } from "#doors/batch/testing/judge.ts";
import { judgeTpch } from "#doors/batch/testing/tpch.ts";

const log = (line: string): void => console.log(line);
const [what = "queries", first, seed = "1"] = process.argv.slice(2);
const startedMs = performance.now();
const tookS = (): number => Math.round((performance.now() - startedMs) / 1_000);

if (what === "queries") {
  const report = await judgeQueries({ random: new Random(`oracle ${seed}`), count: Number(first ?? 2_000), log });
  log(JSON.stringify({ seed, ...report, seconds: tookS() }));
  process.exitCode = report.wrong === 0 ? 0 : 1;
} else if (what === "tpch") {
  const scale = Number(first ?? 0.05);
  const rows = await judgeTpch(scale, log);
  const wrong = rows.filter(({ isEqual }) => !isEqual).map(({ query }) => query);
  log(JSON.stringify({ scale, queries: rows.length, wrong, seconds: tookS() }));
  process.exitCode = wrong.length === 0 ? 0 : 1;
} else {
  log("say queries or tpch");
  process.exitCode = 2;
}
