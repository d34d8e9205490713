/** The peer of every row: DuckDB by itself, in one warm process. Queries come one by one, as COPY. */
import { readFileSync } from "node:fs";
import { DuckDBInstance } from "@duckdb/node-api";
import { answering } from "#bench/load-process.ts";

export type RawAsked = {
  readonly kind: "run";
  readonly threads: number;
  readonly queries: readonly { readonly sql: string; readonly to: string }[];
};
export type RawDid = { readonly wallMs: number; readonly cpuMs: number; readonly peakMb: number };

answering<RawAsked>(async ({ threads, queries }): Promise<RawDid> => {
  const instance = await DuckDBInstance.create(":memory:", { threads: String(threads) });
  const connection = await instance.connect();
  const [before, startedMs] = [process.cpuUsage(), performance.now()];
  for (const { sql, to } of queries)
    await connection.run(`copy (${sql}) to '${to}' (format parquet, compression lz4_raw)`);
  const { user, system } = process.cpuUsage(before);
  const wallMs = performance.now() - startedMs;
  connection.closeSync();
  instance.closeSync();
  const peakKib = /^VmHWM:\s+(\d+)/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1];
  return { wallMs, cpuMs: (user + system) / 1_000, peakMb: (Number(peakKib) * 1_024) / 1e6 };
});
