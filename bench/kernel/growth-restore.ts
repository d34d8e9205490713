/** A million tasks on SQLite: the latency of commands during a snapshot, and how soon a restart serves them again. */
import { systemClock } from "#door/system-clock.ts";
import { must } from "#base/assert.ts";
import { loops, percentile } from "#bench/measure.ts";
import type { Report } from "#bench/report.ts";
import { Rig } from "./rig.ts";
import { commitTasks, reserveTasks, submitJob } from "./work.ts";

const tasksPerJob = 1_000;
const lanes = 20;

export async function measureRestore(report: Report, directory: string, tasks: number): Promise<void> {
  const latencies = await fillAndSnapshot(report, directory, tasks);
  const startedMono = performance.now();
  const cpuBefore = process.cpuUsage();
  {
    await using rig = await Rig.start({ store: { kind: "sqlite", directory } });
    const restoredMs = performance.now() - startedMono;
    const { user, system } = process.cpuUsage(cpuBefore);
    const restoredCpuMs = (user + system) / 1_000;
    const found = rig.node.host.shards.get(0)?.state.tasks.size ?? 0;
    if (found < tasks) throw new Error(`${found} of ${tasks} tasks came back`);
    report.table(
      `${tasks.toLocaleString("en-US")} tasks on SQLite: ${lanes} clients while a snapshot is taken, then a restart`,
      ["", "calm p99 ms", "p50 ms", "p99 ms", "worst ms", "snapshot s", "restored s", "its CPU s"],
      [
        [
          "tasks in memory",
          latencies.calmP99Ms,
          latencies.p50Ms,
          latencies.p99Ms,
          latencies.worstMs,
          latencies.snapshotMs / 1_000,
          restoredMs / 1_000,
          restoredCpuMs / 1_000,
        ],
      ],
    );
    report.figure("snapshot_p99_ms", latencies.p99Ms);
    report.figure("restored_s", restoredMs / 1_000);
    report.figure("restored_cpu_s", restoredCpuMs / 1_000);
    report.target({ what: "p99 of a command while a snapshot is taken, ms", atMost: 50, got: latencies.p99Ms });
    report.target({ what: "seconds until served again from snapshot and log", atMost: 10, got: restoredMs / 1_000 });
  }
}

async function fillAndSnapshot(report: Report, directory: string, tasks: number) {
  await using rig = await Rig.start({
    store: { kind: "sqlite", directory },
    // A snapshot is due when the log has grown by as much as the state's size; filling alone does not get there.
    snapshots: { logBytesMin: 1 },
  });
  const shard = must(rig.node.host.shards.get(0), "shard 0");
  const countMax = tasks - 10 * tasksPerJob + 1;
  await loops({ atOnce: 10, forMs: 60_000, countMax }, async () => {
    await submitJob(rig, 0, tasksPerJob);
    return tasksPerJob;
  });
  const calm = await commandsUntil(rig, systemClock.sleep(1_000));
  const seqBefore = rig.node.status().shards[0]?.snapshotSeq ?? 0;
  // Made due now, by understating the state's size until it has begun.
  const { bytes } = shard.state;
  shard.state.bytes = 0;
  const startedMono = performance.now();
  const taken = (async (): Promise<void> => {
    while (shard.state.capture === undefined) await systemClock.sleep(1);
    shard.state.bytes += bytes;
    while ((rig.node.status().shards[0]?.snapshotSeq ?? 0) === seqBefore) await systemClock.sleep(10);
  })();
  const during = await commandsUntil(rig, taken);
  if (rig.reports.length > 0) report.say(`The node reported: ${rig.reports.at(-1)}`);
  return {
    calmP99Ms: percentile(calm, 0.99),
    p50Ms: percentile(during, 0.5),
    p99Ms: percentile(during, 0.99),
    worstMs: Math.max(...during),
    snapshotMs: performance.now() - startedMono,
  };
}

/** Submits, claims and commits from a few clients until the promise resolves; returns every command's latency. */
async function commandsUntil(rig: Rig, over: Promise<void>): Promise<readonly number[]> {
  let isOver = false;
  const latenciesMs: number[] = [];
  const timed = async <T>(run: Promise<T>): Promise<T> => {
    const startedMono = performance.now();
    const answer = await run;
    latenciesMs.push(performance.now() - startedMono);
    return answer;
  };
  const lane = async (no: number): Promise<void> => {
    const executor = `executor-${no}`;
    while (!isOver) {
      await timed(submitJob(rig, 0, 1));
      for (const grant of await timed(reserveTasks(rig, 0, { executor, count: 1 })))
        await timed(commitTasks(rig, 0, executor, [grant]));
    }
  };
  const all = Promise.all(Array.from({ length: lanes }, (_, no) => lane(no)));
  await over;
  isOver = true;
  await all;
  return latenciesMs;
}
