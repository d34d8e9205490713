/** Does it stay as fast, as small and as fair when a million tasks wait? */
import { rmSync } from "node:fs";
import type { Report } from "#bench/report.ts";
import { measureFairness } from "./fairness.ts";
import { measureQueue } from "./growth-queue.ts";
import { measureRestore } from "./growth-restore.ts";
import { temporaryDirectory } from "./rig.ts";
import type { BenchOptions, Suite } from "#bench/suite.ts";

export const growth: Suite = {
  name: "growth",
  about: "a million queued tasks: cost of a command, memory, snapshots, restart, fairness",
  notMeasured: [
    "the way over a socket, and PostgreSQL: the journal here is SQLite",
    "cost of a command and memory: the kernel alone, without a journal; its garbage collector included",
    "memory of requests, connections and results: only what waits in line",
    "more than one shard: a million tasks in one is the hard case",
  ],
  async run(report: Report, { smoke }: BenchOptions) {
    const directory = temporaryDirectory();
    try {
      await measureRestore(report, directory, smoke ? 20_000 : 1_000_000);
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
    await measureFairness(report, smoke ? 5_000 : 100_000, smoke ? 10 : 50);
    // Last, because its million jobs are garbage that slows down everything after it.
    measureQueue(report, smoke ? [1_000, 10_000] : [1_000, 10_000, 100_000, 1_000_000]);
  },
};
