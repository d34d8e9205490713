/**
 * Staged answers against those of one process: `npm run batch:judge -- queries [count] [seed]` runs generated queries
 * (with `apart` behind that: in engines as on a node, which takes ten times as long; `near 500`: from the 501st on),
 * `npm run batch:judge -- tpch [scale]` the 22 queries of TPC-H over tables of its shape, `npm run batch:judge --
 * world [tasks] [seed]` a query of so many tasks in the simulator, on a hundredth as many executors, with faults.
 */
import { Random } from "#base/random.ts";
import { Engines } from "#doors/batch/run/engines.ts";
import { NearEngine } from "#doors/batch/testing/near-engine.ts";
import { realClock } from "#testing/real-clock.ts";
import { judgeQueries, type JudgeReport } from "#doors/batch/testing/judge.ts";
import { createMemoryStore } from "#blobs/memory/memory-store.ts";
import { QueryWorld } from "#doors/batch/testing/query-world.ts";
import { worldPlan } from "#doors/batch/testing/world-plan.ts";
import { judgeTpch } from "#doors/batch/testing/tpch.ts";

const log = (line: string): void => console.log(line);
const [what = "queries", first, seed = "1", where = "near", skip = "0"] = process.argv.slice(2);
const startedMs = performance.now();
const tookS = (): number => Math.round((performance.now() - startedMs) / 1_000);

if (what === "queries") {
  await using apart = new Engines({ clock: realClock, enginesMax: 2 });
  const engines = where === "apart" ? apart : await NearEngine.open();
  const progress = ({ queries, staged, wrong }: JudgeReport): void =>
    log(`${queries} queries, ${staged} in stages, ${wrong} wrong, ${tookS()} s`);
  const random = new Random(`oracle ${seed}`);
  const report = await judgeQueries({
    random,
    count: Number(first ?? 2_000),
    skip: Number(skip),
    log,
    engines,
    progress,
  });
  log(JSON.stringify({ seed, ...report, seconds: tookS() }));
  process.exitCode = report.wrong === 0 ? 0 : 1;
} else if (what === "tpch") {
  const scale = Number(first ?? 0.05);
  const rows = await judgeTpch(scale, log);
  const wrong = rows.filter(({ isEqual }) => !isEqual).map(({ query }) => query);
  log(JSON.stringify({ scale, queries: rows.length, wrong, seconds: tookS() }));
  process.exitCode = wrong.length === 0 ? 0 : 1;
} else if (what === "world") {
  const tasks = Number(first ?? 100_000);
  const { blobs } = createMemoryStore({ clock: realClock, sizeBytesMax: 4 * 1024 ** 3 }).forTenant("t");
  const plan = await worldPlan(Math.floor(tasks / 2), 64);
  const faults = { dies: 0.002, sleeps: 0.002, isLost: 0.05, lostMax: 10, differs: 0.5 };
  const executors = Math.max(4, Math.floor(tasks / 100));
  const { mixed, ...report } = await new QueryWorld({ plan, blobs, random: new Random(seed), executors, faults }).run();
  for (const line of mixed.slice(0, 10)) log(`MIXED ${line}`);
  log(JSON.stringify({ seed, tasks, executors, ...report, mixed: mixed.length, seconds: tookS() }));
  process.exitCode = report.phase === "SUCCEEDED" && mixed.length === 0 ? 0 : 1;
} else {
  log("say queries, tpch or world");
  process.exitCode = 2;
}
