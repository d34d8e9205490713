/** Runs generated queries in stages and compares every answer. */
import { rm } from "node:fs/promises";
import type { Random } from "#base/random.ts";
import { LocalRuns } from "./local-run.ts";
import { compare, openOracle, writeOracleTables } from "./oracle.ts";
import { QueryGenerator, type GeneratedQuery } from "./query-generator.ts";
import type { CutSettings } from "#doors/batch/plan/settings.ts";
import type { DuckDBConnection } from "@duckdb/node-api";

export type JudgeReport = {
  readonly queries: number;
  readonly staged: number;
  readonly tasks: number;
  readonly wrong: number;
  /** Queries that neither side could run. */
  readonly refused: number;
  readonly whyOne: Readonly<Record<string, number>>;
};

export type Judged = {
  readonly random: Random;
  readonly count: number;
  /** So many are drawn first and not run: they were judged before. */
  readonly skip?: number;
  readonly log: (line: string) => void;
  /** So far, after each set of tables. */
  readonly progress?: (report: JudgeReport) => void;
  /** What runs the tasks. */
  readonly engines: LocalRuns["engines"];
};

const perTables = 50;

export async function judgeQueries({ random, count, skip = 0, log, engines, progress }: Judged): Promise<JudgeReport> {
  const oracle = await openOracle();
  const report = { queries: 0, staged: 0, tasks: 0, wrong: 0, refused: 0, whyOne: {} as Record<string, number> };
  for (let done = 0; done < count; done += perTables) {
    await using runs = await LocalRuns.on({ run: (work, signal) => engines.run(work, signal) });
    const tables = await writeOracleTables(oracle, runs.folder, random.fork("tables"));
    const generator = new QueryGenerator(random.fork("queries"), tables);
    const settings = {
      splitBytes: random.pick([800, 1_500]),
      broadcastBytes: random.pick([1, 1, 2_500, 6_000]),
      partitions: random.between(2, 3),
      reduceBytes: random.pick([1, 3_000]),
    };
    for (let i = 0; i < Math.min(perTables, count - done); i += 1) {
      const query = generator.query();
      if (done + i < skip) continue;
      report.queries += 1;
      await judgeOne(query, settings, { oracle, runs, report, log });
    }
    report.tasks += runs.tasks;
    progress?.({ ...report });
    await rm(runs.folder, { recursive: true, force: true });
  }
  return report;
}

type Court = {
  readonly oracle: DuckDBConnection;
  readonly runs: LocalRuns;
  readonly report: { -readonly [K in keyof JudgeReport]: JudgeReport[K] } & { whyOne: Record<string, number> };
  readonly log: (line: string) => void;
};

async function judgeOne({ sql, isOrdered }: GeneratedQuery, settings: CutSettings, court: Court): Promise<void> {
  const { oracle, runs, report, log } = court;
  const single = await oracle.run(sql).then(
    () => undefined,
    (error: unknown) => String(error),
  );
  try {
    const answer = await runs.run(sql, settings);
    const { how } = answer.plan;
    if (how.kind === "one") report.whyOne[how.why] = (report.whyOne[how.why] ?? 0) + 1;
    else report.staged += 1;
    const { isSame, want, got } = await compare(oracle, sql, answer, isOrdered);
    if (isSame) return;
    report.wrong += 1;
    log(`WRONG ${sql}\n  ${JSON.stringify(settings)}\n  want ${want.slice(0, 6).join(" ")} (${want.length})`);
    log(`  got  ${got.slice(0, 6).join(" ")} (${got.length})`);
  } catch (error) {
    if (single !== undefined) {
      report.refused += 1;
      return;
    }
    report.wrong += 1;
    log(`FAILED ${sql}\n  ${JSON.stringify(settings)}\n  ${String(error)}`);
  }
}
