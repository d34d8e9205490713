/** Tasks that do nothing, through a whole node: what claims, results and the log cost until the job has ended. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startNode, type Running } from "#app/compose/compose.ts";
import { Config } from "#app/config/config.ts";
import { dataFolder } from "#app/node/data-folder.ts";
import { planSubmit } from "#doors/shell/plan.ts";
import { ShellJob } from "#doors/shell/request.ts";
import type { Report } from "#bench/report.ts";
import type { Suite } from "#bench/suite.ts";

const slotsOf = [2, 16] as const;
const roundsMax = 3;

export const tasks: Suite = {
  name: "tasks",
  about: "tasks that do nothing, on 2 and 16 slots of one node with SQLite: durable tasks/s and CPU for each",
  notMeasured: ["what tasks do", "several nodes", "PostgreSQL"],
  async run(report, { smoke }) {
    await measureNothing(report, smoke);
  },
};

/** Tasks a second that are listed one by one, by slots. */
export async function measureNothing(report: Report, smoke: boolean): Promise<ReadonlyMap<number, number>> {
  const perSecond = new Map<number, number>();
  for (const slots of slotsOf) perSecond.set(slots, await onSlots(report, slots, smoke));
  return perSecond;
}

async function onSlots(report: Report, slots: number, smoke: boolean): Promise<number> {
  const root = await mkdtemp(join(tmpdir(), "millrace-bench-tasks-"));
  try {
    const config = Config.parse({ worker: { slots }, blobs: { kind: "disk", sizeMax: "256MiB" } });
    const node = await startNode(config, dataFolder(join(root, "data")), { log: () => {} });
    try {
      await run(node, 200);
      const rates = { count: 0, array: 0 };
      for (const kind of ["count", "array"] as const) {
        const rounds: Measured[] = [];
        for (let round = 0; round < (smoke ? 1 : roundsMax); round += 1)
          rounds.push(await run(node, smoke ? 1_000 : 10_000, kind));
        const [median] = rounds.toSorted((a, b) => a.tookMs - b.tookMs).slice(Math.floor(rounds.length / 2));
        if (median) rates[kind] = say(report, slots, kind, median);
      }
      return rates.count;
    } finally {
      await node.stop();
    }
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

type Measured = { readonly tasks: number; readonly tookMs: number; readonly cpuMs: number };

function say(report: Report, slots: number, kind: string, { tasks: count, tookMs, cpuMs }: Measured): number {
  const rate = Math.round((count / tookMs) * 1_000);
  report.say(`${slots} slots, ${kind}: ${rate} tasks/s, ${(cpuMs / count).toFixed(3)} ms CPU for each`);
  return rate;
}

let jobs = 0;

async function run(node: Running, count: number, kind: "count" | "array" = "count"): Promise<Measured> {
  const job = ShellJob.parse({ name: "nothing", stages: [{ name: "run", sleep: "0ms", [kind]: count }] });
  const [cpu, startedMs] = [process.cpuUsage(), performance.now()];
  const { jobId } = await node.client.submit(planSubmit(job, { tenant: "default", unique: `bench ${(jobs += 1)}` }));
  for await (const message of node.client.watch(jobId, AbortSignal.timeout(300_000)))
    if (message.kind === "end" || (message.kind === "snapshot" && message.view.endedAtMs !== undefined)) break;
    else if (message.kind === "events" && message.events.some((event) => event.kind === "job-ended")) break;
  const { user, system } = process.cpuUsage(cpu);
  const { view } = await node.client.job(jobId);
  if (view.phase !== "SUCCEEDED") throw new Error(`the job ended as ${view.phase}`);
  return { tasks: count, tookMs: performance.now() - startedMs, cpuMs: (user + system) / 1_000 };
}
