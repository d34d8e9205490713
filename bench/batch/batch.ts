/** Queries over a node with two slots, beside DuckDB by itself on two threads, over the same files and in turns. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LoadProcess } from "#bench/load-process.ts";
import { median } from "#bench/measure.ts";
import type { Figure, Report } from "#bench/report.ts";
import type { Suite } from "#bench/suite.ts";
import { measureNothing } from "#bench/tasks/tasks.ts";
import { openOracle } from "#doors/batch/testing/oracle.ts";
import type { DuckDBConnection } from "@duckdb/node-api";
import { BenchNode, type Used } from "./bench-node.ts";
import { sameAnswers } from "./compare.ts";
import { measureLatency, measureReuse } from "./small.ts";
import { openPeers, type Peer } from "./peers.ts";
import type { RawAsked, RawDid } from "./raw.ts";
import { measurePlanMemory } from "./plan-memory.ts";
import { measureSpill } from "./spill.ts";
import { queryIn, tpch, workloads, type Workload } from "./workloads.ts";

/** `$BENCH_BATCH` picks some by the beginning of their names; `$BENCH_TPCH` says how large TPC-H is, as 1,10. */
const picked = (process.env["BENCH_BATCH"] ?? "").split(",").filter((one) => one !== "");
const isPicked = (name: string): boolean => picked.length === 0 || picked.some((one) => name.startsWith(one));
const tpchScales = (process.env["BENCH_TPCH"] ?? "1").split(",").map(Number);

export const batch: Suite = {
  name: "batch",
  about: "queries on a node with two slots beside DuckDB alone: wall, CPU and memory, answers compared",
  notMeasured: [
    "several nodes and S3: files and packs are on one disk, in the page cache",
    "the benchmark's own tables of TPC-H: ours have their shape, and other texts and distributions",
    "Sail and Ray: peers are Polars and PySpark, from PyPI, with --peers",
  ],
  async run(report, { smoke, peers: wantsPeers }) {
    const root = mkdtempSync(join(tmpdir(), "millrace-bench-tables-"));
    const scale = smoke ? 0.01 : 1;
    try {
      const connection = await openOracle();
      const peers = wantsPeers ? openPeers() : [];
      const court: Court = { report, connection, root, scale, rounds: smoke ? 1 : 3, peers };
      const all = [...workloads, ...tpchScales.map(tpch)].filter(({ name }) => isPicked(name));
      if (all.length > 0) await compareAll(all, court);
      await alone(report, connection, root, smoke);
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  },
};

type Court = {
  readonly report: Report;
  readonly connection: DuckDBConnection;
  readonly root: string;
  readonly scale: number;
  readonly rounds: number;
  readonly peers: readonly Peer[];
};

async function alone(report: Report, connection: DuckDBConnection, root: string, smoke: boolean): Promise<void> {
  if (isPicked("latency")) await measureLatency(report, connection, join(root, "latency"), smoke ? 5 : 40);
  if (isPicked("reuse")) await measureReuse(report, connection, join(root, "reuse"));
  if (isPicked("spill")) await measureSpill(report, connection, root, smoke ? 0.05 : 1);
  if (isPicked("nothing")) {
    const perSecond = await measureNothing(report, smoke);
    for (const [slots, atLeast] of [
      [2, 3_000],
      [16, 10_000],
    ] as const)
      report.target({
        what: `durable tasks that do nothing a second, ${slots} slots`,
        atLeast,
        got: perSecond.get(slots),
      });
  }
  if (isPicked("memory")) measurePlanMemory(report, smoke ? [1_000, 10_000] : [1_000, 10_000, 100_000, 1_000_000]);
}

async function compareAll(all: readonly Workload[], court: Court): Promise<void> {
  const { report } = court;
  await using node = await BenchNode.open();
  const rows: Figure[][] = [];
  for (const workload of all) {
    report.say(`${workload.name} ...`);
    const { ours, raw, peers, areSame } = await measureOne(workload, node, court);
    const cells = (used: Used): readonly Figure[] => [used.wallMs / 1_000, used.cpuMs / 1_000, used.peakMb];
    const ratio = ours.cpuMs / raw.cpuMs;
    rows.push([
      workload.name,
      "millrace",
      ...cells(ours),
      ours.wallMs / raw.wallMs,
      ratio,
      areSame ? "same" : "DIFFERS",
    ]);
    rows.push(["", `DuckDB, ${workload.isOneTask ? "1 thread" : "2 threads"}`, ...cells(raw), 1, 1, ""]);
    for (const [name, used] of peers)
      rows.push([
        "",
        name,
        ...(used ? cells(used) : ["-", "-", "-"]),
        ...(used ? [used.wallMs / raw.wallMs, used.cpuMs / raw.cpuMs] : ["-", "-"]),
        "",
      ]);
    report.target({ what: `${workload.name}: answers that differ`, atMost: 0, got: areSame ? 0 : 1 });
    if (workload.ratioMax !== undefined) {
      report.target({ what: `${workload.name}: CPU, ours / DuckDB`, atMost: workload.ratioMax, got: ratio });
      report.target({
        what: `${workload.name}: wall, ours / DuckDB`,
        atMost: workload.ratioMax,
        got: ours.wallMs / raw.wallMs,
      });
    }
    const spark = peers.find(([name]) => name === "PySpark")?.[1];
    report.target({
      what: `${workload.name}: PySpark / ours, wall`,
      atLeast: workload.sparkMin,
      got: spark && spark.wallMs / ours.wallMs,
      missing: "pyspark is not installed, or --peers was not said",
    });
  }
  report.table(
    "Medians, in turns. Memory: all processes at once; of DuckDB alone its process at its largest",
    ["", "by", "wall s", "CPU s", "peak MB", "wall, of DuckDB's", "CPU, of DuckDB's", "answers"],
    rows,
  );
}

type Measured = {
  readonly ours: Used;
  readonly raw: Used;
  readonly peers: readonly (readonly [name: string, used: Used | undefined])[];
  readonly areSame: boolean;
};

async function measureOne(workload: Workload, node: BenchNode, court: Court): Promise<Measured> {
  const { connection, root, scale, rounds } = court;
  const folder = join(root, workload.name.replaceAll(/\W+/g, "-"));
  mkdirSync(folder);
  try {
    await workload.write(connection, folder, scale);
    const queries = workload.queries.map((one) => queryIn(one, folder));
    const rawQueries = (workload.rawQueries ?? workload.queries).map((one) => queryIn(one, folder));
    const [ours, raw]: [Used[], Used[]] = [[], []];
    let areSame = true;
    for (let round = 0; round < rounds; round += 1) {
      const [views, used] = await node.measured(async () => {
        const ended = [];
        for (const sql of queries)
          ended.push(await node.ended(await node.submit(sql, { ...workload.sizes, fresh: true })));
        return ended;
      });
      ours.push(used);
      const to = rawQueries.map((_, i) => join(folder, `raw-${i}.parquet`));
      raw.push(
        await runRaw(
          rawQueries.map((sql, i) => ({ sql, to: to[i] ?? "" })),
          workload.isOneTask ? 1 : 2,
        ),
      );
      if (round > 0) continue;
      for (const [i, view] of views.entries()) {
        const mine = await node.fetch(view);
        areSame &&= await sameAnswers(connection, { mine, theirs: to[i] ?? "", isSorted: workload.isSorted ?? false });
      }
    }
    const peers = court.peers.map((peer) => [peer.name, peer.run(workload, folder)] as const);
    return { ours: medianOf(ours), raw: medianOf(raw), peers, areSame };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function runRaw(queries: RawAsked["queries"], threads: number): Promise<RawDid> {
  const process = new LoadProcess<RawAsked, RawDid>(join(import.meta.dirname, "raw.ts"));
  try {
    return await process.ask({ kind: "run", threads, queries });
  } finally {
    process.stop();
  }
}

const medianOf = (all: readonly Used[]): Used => ({
  wallMs: median(all.map(({ wallMs }) => wallMs)),
  cpuMs: median(all.map(({ cpuMs }) => cpuMs)),
  peakMb: Math.max(...all.map(({ peakMb }) => peakMb)),
});
