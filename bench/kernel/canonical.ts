/** The one to run after every change: two numbers, in ten seconds. */
import { Rig } from "./rig.ts";
import type { Suite } from "#bench/suite.ts";
import { endToEnd } from "./throughput.ts";

const about = "one-task jobs end to end on SQLite, with history: throughput and p99";

export const canonical: Suite = {
  name: "canonical",
  about,
  notMeasured: [
    "the way over a socket: the node is called in this process",
    "any work done by a task, and the bytes of its results",
    "a machine of your own: rates depend on what else runs",
  ],
  async run(report, { smoke }) {
    await using rig = await Rig.start({ store: { kind: "sqlite" } });
    await endToEnd(rig, { tasksPerJob: 1 }, smoke ? 300 : 3_000);
    const measured = await endToEnd(rig, { tasksPerJob: 1 }, smoke ? 500 : 6_000);
    const columns = ["", "tasks/s", "p50 ms", "p99 ms", "CPU us/task"];
    const { perSecond, p50Ms, p99Ms, cpuUs } = measured;
    report.table("End to end", columns, [["one-task jobs", perSecond, p50Ms, p99Ms, cpuUs]]);
    report.figure("tasks_per_s", perSecond);
    report.figure("p99_ms", p99Ms);
  },
};
