/** What this node shows of queries at /metrics. */
import type { Metrics } from "#door/door.ts";
import type { Job } from "#kernel/model/entities.ts";
import type { SealedBatch } from "#shard/host/batch.ts";
import type { ShardObserver } from "#shard/host/observer.ts";
import type { HostedShard } from "#shard/host/shard.ts";
import type { TaskResult } from "./documents.ts";
import { door } from "./plan.ts";

/** In seconds: from a query of one small file to one of hours. */
const bounds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600] as const;

function families(metrics: Metrics) {
  const counter = (name: string, help: string) =>
    metrics.counter({ name: `millrace_batch_${name}`, help, labels: [] }).with();
  return {
    queries: metrics.counter({
      name: "millrace_batch_queries_total",
      help: "Queries that have ended, by how: succeeded, failed, cancelled.",
      labels: ["outcome"],
    }),
    duration: metrics.histogram({
      name: "millrace_batch_query_seconds",
      help: "How long queries took from their submission to their end, by how they ended.",
      labels: ["outcome"],
      bounds,
    }),
    tasks: metrics.counter({
      name: "millrace_batch_tasks_total",
      help: "Parts of stages that this node did: computed, or reused from earlier queries.",
      labels: ["outcome"],
    }),
    taskSeconds: metrics
      .histogram({ name: "millrace_batch_task_seconds", help: "How long they took to compute.", labels: [], bounds })
      .with(),
    rows: counter("rows_written_total", "Rows that they wrote."),
    bytes: counter("bytes_written_total", "Bytes of packs that they wrote."),
    cpu: counter("cpu_seconds_total", "CPU time of engines."),
    spilled: counter("spilled_bytes_total", "Bytes that did not fit into the memory of their task."),
    outOfMemory: counter("out_of_memory_total", "Tasks that ran out of their memory and were given twice as much."),
    nondeterministic: counter(
      "nondeterministic_total",
      "Tasks that wrote other bytes than an earlier one with the same SQL and inputs.",
    ),
  };
}

export type TaskCounts = {
  computed(result: Pick<TaskResult, "rows" | "bytes" | "cpuMs" | "spilled">, ms: number): void;
  reused(): void;
  outOfMemory(): void;
  nondeterministic(): void;
};

/** Queries are counted where their shard is owned, tasks where they run: the sum over all nodes is the cluster's. */
export class BatchMetrics implements TaskCounts, ShardObserver {
  #families: ReturnType<typeof families> | undefined;

  bind(metrics: Metrics): void {
    this.#families = families(metrics);
  }

  computed({ rows, bytes, cpuMs, spilled = 0 }: Parameters<TaskCounts["computed"]>[0], ms: number): void {
    const all = this.#families;
    all?.tasks.with("computed").add();
    all?.taskSeconds.observe(ms / 1_000);
    all?.rows.add(rows);
    all?.bytes.add(bytes);
    all?.cpu.add(cpuMs / 1_000);
    all?.spilled.add(spilled);
  }

  reused(): void {
    this.#families?.tasks.with("reused").add();
  }

  outOfMemory(): void {
    this.#families?.outOfMemory.add();
  }

  nondeterministic(): void {
    this.#families?.nondeterministic.add();
  }

  durable({ state }: HostedShard, { events }: SealedBatch): void {
    for (const event of events) {
      if (event.kind !== "job-ended") continue;
      const job = state.jobs.get(event.job);
      if (job?.door === door) this.#ended(job, event.phase.toLowerCase(), event.at);
    }
  }

  #ended({ submittedAtMs }: Job, outcome: string, atMs: number): void {
    this.#families?.queries.with(outcome).add();
    this.#families?.duration.with(outcome).observe((atMs - submittedAtMs) / 1_000);
  }
}

export const uncounted: TaskCounts = { computed() {}, reused() {}, outOfMemory() {}, nondeterministic() {} };
