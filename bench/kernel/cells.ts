/** Throughput by store, shape of job, number of shards and history: one thing is varied at a time. */
import type { ServerCpu, Stretch } from "#bench/measure.ts";
import type { Figure, Report } from "#bench/report.ts";
import { Rig, type Store } from "./rig.ts";
import { drain, endToEnd, enqueue, report as reportSteps, type EndToEnd } from "./throughput.ts";

export type Bench = { readonly store: Store; readonly server: ServerCpu | undefined };

type Cell = {
  readonly label: string;
  readonly tasksPerJob?: number;
  readonly shards?: number;
  readonly history?: boolean;
  readonly keyed?: boolean;
  /** Step reports are measured as well. */
  readonly reports?: boolean;
  /** Left out of a smoke run. */
  readonly isVariant?: boolean;
};

const cells: readonly Cell[] = [
  { label: "one-task jobs", reports: true },
  { label: "without history", history: false, reports: true },
  { label: "100-task stages", tasksPerJob: 100 },
  { label: "100-task, without history", tasksPerJob: 100, history: false, isVariant: true },
  { label: "2 shards", shards: 2, isVariant: true },
  { label: "4 shards", shards: 4, isVariant: true },
  { label: "with request keys", keyed: true, isVariant: true },
];

type Measured = {
  readonly cell: Cell;
  readonly enqueued: Stretch;
  readonly drained: Stretch;
  readonly ended: EndToEnd;
  readonly steps: readonly Stretch[];
};

export type CellTimes = {
  readonly tasks: number;
  readonly endToEndMs: number;
  readonly reportMs: number;
  readonly variants: boolean;
  /** Variants that would begin later than this are left out, so that the whole stays within its two minutes. */
  readonly untilMs: number;
};

export async function measureCells(report: Report, bench: Bench, times: CellTimes): Promise<readonly Measured[]> {
  const measured: Measured[] = [];
  const leftOut: string[] = [];
  for (const cell of cells) {
    if (!cell.isVariant || (times.variants && report.elapsedMs < times.untilMs))
      measured.push(await measure(cell, bench, times));
    else leftOut.push(cell.label);
  }
  const { kind } = bench.store;
  const columns = [
    "tasks/s",
    "enqueue",
    "CPU us",
    "claim+complete",
    "CPU us",
    "end to end",
    "p50 ms",
    "p99 ms",
    "CPU us",
  ];
  report.table(
    `Tasks per second on ${kind}; CPU is this process, with the load it makes${kind === "postgres" ? " (+ the server)" : ""}`,
    columns,
    measured.map(({ cell, enqueued, drained, ended }) => [
      cell.label,
      enqueued.perSecond,
      cpuOf(enqueued),
      drained.perSecond,
      cpuOf(drained),
      ended.perSecond,
      ended.p50Ms,
      ended.p99Ms,
      cpuOf(ended),
    ]),
  );
  if (leftOut.length > 0) report.say(`Left out for want of time: ${leftOut.join("; ")}.`);
  const rows = measured.flatMap(({ cell, steps }) =>
    steps.map((one, i): readonly Figure[] => [cell.label, stepsEach[i] ?? 0, one.perSecond, cpuOf(one)]),
  );
  report.table(`Steps reported per second on ${kind}`, ["", "steps a report", "steps/s", "CPU us"], rows);
  return measured;
}

const stepsEach = [1, 8];

/** The server's and this process's share, or this process's alone. */
export const cpuOf = ({ cpuUs, serverCpuUs }: Stretch): Figure =>
  serverCpuUs === undefined ? cpuUs : `${cpuUs.toFixed(0)} + ${serverCpuUs.toFixed(0)}`;

async function measure(cell: Cell, { store, server }: Bench, times: CellTimes): Promise<Measured> {
  const { tasksPerJob = 1, shards = 1, history = true, keyed = false } = cell;
  await using rig = await Rig.start({ store, shards, history });
  const shape = { tasksPerJob, keyed };
  const enqueued = await enqueue(rig, shape, times.tasks, server);
  const drained = await drain(rig, server);
  const ended = await endToEnd(rig, shape, times.endToEndMs, server);
  const steps: Stretch[] = [];
  if (cell.reports) for (const each of stepsEach) steps.push(await reportSteps(rig, each, times.reportMs, server));
  return { cell, enqueued, drained, ended, steps };
}

export const cellOf = (measured: readonly Measured[], label: string): Measured | undefined =>
  measured.find(({ cell }) => cell.label === label);
