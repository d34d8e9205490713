/** What a task costs that has a quarter of the memory that it would use. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { DuckDBConnection } from "@duckdb/node-api";
import { median } from "#bench/measure.ts";
import type { Figure, Report } from "#bench/report.ts";
import { Engines } from "#doors/batch/run/engines.ts";
import { systemClock } from "#door/system-clock.ts";

const MiB = 1024 * 1024;
const rounds = 3;

export async function measureSpill(
  report: Report,
  connection: DuckDBConnection,
  root: string,
  scale: number,
): Promise<void> {
  const folder = join(root, "spill");
  mkdirSync(folder);
  const path = join(folder, "rows.parquet");
  const count = Math.round(8_000_000 * scale);
  await connection.run(
    `copy (select md5(range::varchar) as k, hash(range, 1) as a, md5(hash(range, 2)::varchar) as v from range(${count})) to '${path}'`,
  );
  await using engines = new Engines({ clock: systemClock, enginesMax: 1 });
  let runs = 0;
  const run = async (sql: string, memoryBytes: number) => {
    const to = join(folder, `out-${(runs += 1)}.parquet`);
    const startedMs = performance.now();
    const { cpuMs, spilledBytes } = await engines.run(
      {
        paths: [path, to],
        spillFolder: join(folder, "temporary"),
        memoryBytes,
        spillBytes: 40_000 * MiB,
        settings: [],
        statements: [{ sql: `copy (${sql}) to '${to}'` }],
      },
      new AbortController().signal,
    );
    return { wallMs: performance.now() - startedMs, cpuMs, spilledBytes };
  };
  const rows: Figure[][] = [];
  // About what each keeps in memory at once, as rows of this table.
  for (const [name, sql, rowBytes] of [
    ["sort", "select k, a, v from rows order by k", 110],
    ["group-by", "select k, min(a) as a, max(v) as v from rows group by k", 110],
  ] as const) {
    const query = sql.replace("from rows", `from '${path}'`);
    const needed = count * rowBytes;
    const measured = { plenty: [] as number[], quarter: [] as number[] };
    let spilled = 0;
    for (let round = 0; round < rounds; round += 1) {
      measured.plenty.push((await run(query, needed * 10)).wallMs);
      const { wallMs, spilledBytes } = await run(query, Math.max(192 * MiB, needed / 4));
      measured.quarter.push(wallMs);
      spilled = Math.max(spilled, spilledBytes);
    }
    const [plenty, quarter] = [median(measured.plenty), median(measured.quarter)];
    rows.push([name, plenty, quarter, quarter / plenty, spilled / 1e6]);
    report.target({ what: `${name} with a quarter of its memory, times slower`, atMost: 3, got: quarter / plenty });
  }
  report.table(
    `One task over ${count} rows of ${Math.round((count * 110) / 1e6)} MB`,
    ["", "wall ms", "with a quarter of the memory", "times", "spilled MB"],
    rows,
  );
}
