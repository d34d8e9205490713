/** The durable queue: how fast, at what cost, and compared with other queues. */
import { startPostgres } from "#testing/postgres.ts";
import { cellOf, measureCells } from "./cells.ts";
import { arrayStage } from "./arrays.ts";
import { holdClaims } from "./claims.ts";
import { serverCpu } from "#bench/measure.ts";
import { remote } from "./remote.ts";
import type { Report } from "#bench/report.ts";
import { Rig } from "./rig.ts";
import { compare } from "./rivals.ts";
import { steadyState } from "./steady.ts";
import type { BenchOptions, Suite } from "#bench/suite.ts";
import { drain, endToEnd, enqueue } from "./throughput.ts";

export const kernel: Suite = {
  name: "kernel",
  about: "durable tasks through a real node on SQLite and PostgreSQL, against other queues on the same server",
  notMeasured: [
    "the way over a socket, without --remote: the node is called in this process, the peers' servers over theirs",
    "any work done by a task, and moving the bytes of its results: blobs are small and in memory",
    "request keys, except in their own row: none of the peers refuses a second submission",
    "several processes or machines: everything, the load included, shares these cores",
    "whether the disk keeps its word: fsync is on everywhere, what it does is the machine's affair",
  ],
  async run(report, options) {
    const { smoke } = options;
    const postgres = await startPostgres();
    try {
      if (options.remote) return await remote(report, postgres.skip === false ? postgres.server() : undefined, options);
      await warmUp(smoke ? 300 : 2_000);
      await throughput(report, options, postgres.skip === false ? postgres.server() : undefined);
      arrayStage(report, smoke ? 20_000 : 1_000_000);
      const claims = smoke ? { executors: 50, claimsEach: 20, overMs: 500 } : fullClaims;
      await holdClaims(report, claims);
      await steadyState(report, { kind: "sqlite" }, smoke ? 2_000 : 60_000);
      if (postgres.skip !== false) report.say(`PostgreSQL is not shown: ${postgres.skip}`);
    } finally {
      await postgres.stop();
    }
  },
};

const fullClaims = { executors: 1_000, claimsEach: 100, overMs: 3_000 };
const full = { tasks: 8_000, endToEndMs: 900, reportMs: 500, variants: true, untilMs: 20_000 };
const brief = { tasks: 1_500, endToEndMs: 100, reportMs: 60, variants: false, untilMs: 0 };

type Server = ReturnType<Awaited<ReturnType<typeof startPostgres>>["server"]>;

async function throughput(report: Report, { smoke, peers }: BenchOptions, server: Server | undefined): Promise<void> {
  const untilMs = peers ? Number.POSITIVE_INFINITY : full.untilMs;
  const times = smoke ? brief : { ...full, untilMs };
  const sqlite = await measureCells(report, { store: { kind: "sqlite" }, server: undefined }, times);
  const steps: number[] = [];
  const bare = cellOf(sqlite, "without history");
  const cpuUs = bare?.ended.cpuUs;
  report.figure("sqlite_end_to_end_cpu_us", cpuUs ?? Number.NaN);
  report.figure("sqlite_end_to_end_per_s", bare?.ended.perSecond ?? Number.NaN);
  report.target({ what: "CPU us a one-task job end to end on SQLite, without history", atMost: 40, got: cpuUs });
  steps.push(bare?.steps[0]?.perSecond ?? 0);
  if (server) {
    const store = { kind: "postgres", server } as const;
    const bench = { store, server: await serverCpu(server) };
    const measured = await measureCells(report, bench, { ...times, untilMs: 2 * untilMs });
    report.figure("postgres_claim_complete_per_s", cellOf(measured, "one-task jobs")?.drained.perSecond ?? Number.NaN);
    steps.push(cellOf(measured, "without history")?.steps[0]?.perSecond ?? 0);
    await compare(report, server, {
      tasks: smoke ? 2_000 : peers ? 36_000 : 24_000,
      rounds: smoke ? 1 : 5,
      untilMs: 2.4 * untilMs,
      peers,
    });
  } else {
    const missing = "needs PostgreSQL";
    report.target({ what: "claim+complete / SKIP LOCKED by hand", atLeast: 1.5, got: undefined, missing });
    report.target({ what: "claim+complete / any library", atLeast: 5, got: undefined, missing });
  }
  report.figure("step_reports_per_s", Math.max(...steps));
  report.target({ what: "step reports a second, one step each, durable", atLeast: 58_000, got: Math.max(...steps) });
}

/** The first second runs on code that is not compiled yet. */
async function warmUp(forMs: number): Promise<void> {
  await using rig = await Rig.start({ store: { kind: "sqlite" } });
  await enqueue(rig, { tasksPerJob: 1 }, forMs * 2);
  await drain(rig);
  await endToEnd(rig, { tasksPerJob: 1 }, forMs);
}
