/** What people wait for most: a small query on a warm node, and one that mostly was computed before. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { DuckDBConnection } from "@duckdb/node-api";
import { percentile } from "#bench/measure.ts";
import type { Report } from "#bench/report.ts";
import { BenchNode } from "./bench-node.ts";

export async function measureLatency(
  report: Report,
  connection: DuckDBConnection,
  folder: string,
  rounds: number,
): Promise<void> {
  mkdirSync(folder);
  const path = join(folder, "small.csv");
  await connection.run(
    `copy (select range as id, hash(range, 1) % 1000 as k, hash(range, 2) % 100000 as v from range(600000)) to '${path}' (header)`,
  );
  const sql = `select k, sum(v) as v, count(*) as n from '${path}' group by k order by v desc limit 10`;
  await using node = await BenchNode.open();
  for (let i = 0; i < 5; i += 1) await node.ended(await node.submit(sql, { fresh: true }));
  const all: number[] = [];
  const [, used] = await node.measured(async () => {
    for (let i = 0; i < rounds; i += 1) {
      const startedMs = performance.now();
      await node.fetch(await node.ended(await node.submit(sql, { fresh: true })));
      all.push(performance.now() - startedMs);
    }
  });
  const [startedMs, before] = [performance.now(), process.cpuUsage()];
  for (let i = 0; i < rounds; i += 1) await connection.runAndReadAll(sql);
  const { user, system } = process.cpuUsage(before);
  const raw = { wallMs: (performance.now() - startedMs) / rounds, cpuMs: (user + system) / 1_000 / rounds };
  report.table(
    "A query over a CSV file of 10 MB on a warm node, from submit to result",
    ["", "p50 ms", "p99 ms", "CPU ms"],
    [
      ["millrace", percentile(all, 0.5), percentile(all, 0.99), used.cpuMs / rounds],
      ["DuckDB, 1 thread", raw.wallMs, "-", raw.cpuMs],
    ],
  );
  report.target({ what: "10 MB on a warm node, p50 ms", atMost: 150, got: percentile(all, 0.5) });
}

export async function measureReuse(report: Report, connection: DuckDBConnection, folder: string): Promise<void> {
  mkdirSync(folder);
  const write = (file: number, salt: number): Promise<unknown> =>
    connection.run(
      `copy (select hash(range, ${salt}) % 5000 as k, hash(range, ${file + 100}) % 1000 as v from range(20000)) to '${folder}/in-${file}.parquet'`,
    );
  for (let i = 0; i < 64; i += 1) await write(i, i);
  const sql = `select k, sum(v) as v from '${folder}/in-*.parquet' group by k`;
  const sizes = { splitBytes: 60_000, broadcastBytes: 1 };
  await using node = await BenchNode.open();
  const run = async () => {
    const [view, used] = await node.measured(async () => await node.ended(await node.submit(sql, sizes)));
    return {
      used,
      stages: view.stages.map(({ about, tasks, reused }) => ({ about, tasks, computed: tasks - reused })),
    };
  };
  const runs = [await run(), await run()];
  await write(17, 1_000);
  runs.push(await run());
  const [, again, changed] = runs;
  report.table(
    "The same query over 64 files: once, again, and with one of them changed",
    ["", "wall ms", "CPU ms", "stages: computed of tasks"],
    runs.map(({ used, stages }, i) => [
      ["once", "again", "one changed"][i] ?? "",
      used.wallMs,
      used.cpuMs,
      stages.map(({ computed, tasks }) => `${computed} of ${tasks}`).join(", "),
    ]),
  );
  report.target({ what: "computed again with nothing changed", atMost: 0, got: sum(again?.stages) });
  report.target({ what: "maps computed with one of 64 files changed", atMost: 1, got: changed?.stages[0]?.computed });
}

const sum = (stages: readonly { readonly computed: number }[] = []): number =>
  stages.reduce((all, { computed }) => all + computed, 0);
