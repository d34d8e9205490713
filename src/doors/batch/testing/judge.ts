/** Runs generated queries in stages and compares every answer. */
import type { Random } from "#base/random.ts";
import { realClock } from "#testing/real-clock.ts";
import { LocalRuns } from "./local-run.ts";
import { compare, openOracle, writeOracleTables } from "./oracle.ts";
import { QueryGenerator } from "./query-generator.ts";

export type JudgeReport = {
  readonly queries: number;
  readonly staged: number;
  readonly tasks: number;
  readonly wrong: number;
  /** Queries that neither side could run. */
  readonly refused: number;
  readonly whyOne: Readonly<Record<string, number>>;
};

/** Several queries at once: most of one is waiting for processes. */
const atOnce = 3;
const perTables = 100;

export async function judgeQueries({
  random,
  count,
  log,
}: {
  readonly random: Random;
  readonly count: number;
  readonly log: (line: string) => void;
}): Promise<JudgeReport> {
  await using runs = await LocalRuns.open(realClock, 2);
  const oracle = await openOracle();
  const report = { queries: 0, staged: 0, tasks: 0, wrong: 0, refused: 0, whyOne: {} as Record<string, number> };
  for (let done = 0; done < count; done += perTables) {
    const tables = await writeOracleTables(oracle, runs.folder, random.fork("tables"));
    const generator = new QueryGenerator(random.fork("queries"), tables);
    const settings = {
      splitBytes: 800,
      broadcastBytes: random.pick([1, 1, 2_500, 6_000]),
      partitions: random.between(2, 3),
      reduceBytes: random.pick([1, 3_000]),
    };
    const queries = Array.from({ length: Math.min(perTables, count - done) }, () => generator.query()).values();
    const judge = async (): Promise<void> => {
      for (const { sql, isOrdered } of queries) {
        report.queries += 1;
        const single = await oracle.run(sql).then(
          () => undefined,
          (error: unknown) => String(error),
        );
        try {
          const answer = await runs.run(sql, settings);
          const { how } = answer.plan;
          if (how.kind === "one") report.whyOne[how.why] = (report.whyOne[how.why] ?? 0) + 1;
          else report.staged += 1;
          report.tasks = answer.tasks;
          const found = await compare(oracle, sql, answer, isOrdered);
          if (found.isSame) continue;
          report.wrong += 1;
          log(
            `WRONG ${sql}\n  ${JSON.stringify(settings)}\n  want ${found.want.slice(0, 6).join(" ")} (${found.want.length})`,
          );
          log(`  got  ${found.got.slice(0, 6).join(" ")} (${found.got.length})`);
        } catch (error) {
          if (single !== undefined) {
            report.refused += 1;
            continue;
          }
          report.wrong += 1;
          log(`FAILED ${sql}\n  ${String(error)}`);
        }
      }
    };
    await Promise.all(Array.from({ length: atOnce }, judge));
  }
  return report;
}
