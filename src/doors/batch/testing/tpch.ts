/** All 22 queries in stages, each compared with what one process answers. */
import { LocalRuns } from "./local-run.ts";
import { compare, openOracle } from "./oracle.ts";
import { realClock } from "#testing/real-clock.ts";
import { tpchQueries } from "./tpch-queries.ts";
import { writeTpchTables } from "./tpch-tables.ts";

export type TpchRow = {
  readonly query: number;
  readonly isEqual: boolean;
  readonly isStaged: boolean;
  readonly rows: number;
};

export async function judgeTpch(scale: number, log: (line: string) => void): Promise<readonly TpchRow[]> {
  await using runs = await LocalRuns.open(realClock, 2);
  const oracle = await openOracle();
  await writeTpchTables(oracle, runs.folder, scale);
  // So small that lineitem, orders, partsupp, part and customer are cut, and joins of two of them are shuffled.
  const bytes = scale * 1e6;
  const settings = { splitBytes: 10 * bytes, broadcastBytes: bytes / 2, partitions: 3, reduceBytes: 10 * bytes };
  const rows: TpchRow[] = [];
  for (const [i, template] of tpchQueries.entries()) {
    const sql = template.replace(/\$(\w+)\$/g, (_, name: string) => `'${runs.folder}/${name}.parquet'`);
    const startedMs = performance.now();
    try {
      const answer = await runs.run(sql, settings);
      const { isSame, want, got } = await compare(oracle, sql, answer, / order by /.test(sql));
      const isStaged = answer.plan.how.kind === "stages";
      const stages = answer.stages.map(({ stage, parts }) => `${stage.about}[${parts.length}]`).join(", ");
      rows.push({ query: i + 1, isEqual: isSame, isStaged, rows: want.length });
      log(
        `Q${i + 1} ${isSame ? "equal" : "DIFFERS"} ${want.length} rows ${Math.round(performance.now() - startedMs)} ms: ${stages}`,
      );
      if (!isSame) log(`  want ${want.slice(0, 3).join(" ")}\n  got  ${got.slice(0, 3).join(" ")} (${got.length})`);
    } catch (error) {
      rows.push({ query: i + 1, isEqual: false, isStaged: false, rows: 0 });
      log(`Q${i + 1} FAILED ${String(error)}`);
    }
  }
  return rows;
}
