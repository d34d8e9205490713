/** Steps that begin and end, reported through the protocol that runners elsewhere speak: durable ones a second. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { LoadProcess } from "#bench/load-process.ts";
import { processCpuUs } from "#bench/measure.ts";
import type { Figure, Report } from "#bench/report.ts";
import type { Reported, ReportWork } from "./protocol-load.ts";

const targetPerS = 58_000;
const jobs = 500;
/** What a runner's worker sends: what came within 200 ms, of one job; many jobs on one runner; a proxy of runners. */
const shapes = [
  { steps: 2, together: 1 },
  { steps: 10, together: 1 },
  { steps: 2, together: 100 },
] as const;

export async function transitions(
  report: Report,
  { forMs, shards }: { readonly forMs: number; readonly shards: readonly number[] },
): Promise<void> {
  const rows: Figure[][] = [];
  let best = 0;
  for (const count of shards) {
    const node = fork(join(import.meta.dirname, "protocol-node.ts"), [String(count)], { execArgv: process.execArgv });
    const load = new LoadProcess<ReportWork, Reported>(join(import.meta.dirname, "protocol-load.ts"));
    try {
      const [{ address, token }] = (await once(node, "message")) as [{ address: string; token: string }];
      const work = { kind: "report", address, token, shards: count, jobs: Math.ceil(jobs / count) } as const;
      await load.ask({ ...work, ...shapes[1], forMs: Math.min(forMs, 1_000) });
      for (const shape of shapes) {
        const before = processCpuUs(node.pid ?? 0);
        const { transitions: done, seconds, cpuUs } = await load.ask({ ...work, ...shape, forMs });
        const nodeUs = processCpuUs(node.pid ?? 0) - before;
        rows.push([count, shape.steps, shape.together, done / seconds, nodeUs / done, cpuUs / done]);
        best = Math.max(best, done / seconds);
      }
    } finally {
      load.stop();
      node.kill();
      await once(node, "exit");
    }
  }
  report.table(
    "Steps that begin or end, through the runner protocol",
    ["shards", "steps a report", "reports a request", "a second", "CPU us of the node", "CPU us of the runners"],
    rows,
  );
  report.figure("step transitions a second", best);
  report.target({ what: "step transitions a second through the runner protocol", atLeast: targetPerS, got: best });
}
