/** Jobs that run for hours on many runners: what it takes to hold them, and to renew their claims. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Report } from "#bench/report.ts";

type Held = {
  readonly count: number;
  readonly bytesEach: number;
  readonly renewUs: number;
  readonly slowestMs: number;
  readonly coreShare: number;
};

export async function heldJobs(report: Report, jobs: number, runners: number): Promise<void> {
  const program = join(import.meta.dirname, "held-node.ts");
  const execArgv = [...process.execArgv, "--expose-gc", "--max-old-space-size=6144"];
  const node = fork(program, [String(jobs), String(runners)], { execArgv });
  const failed = once(node, "exit").then(([code]) => {
    throw new Error(`the node that holds jobs ended with ${code}`);
  });
  failed.catch(() => {}); // it ends in any case
  const [held] = (await Promise.race([once(node, "message"), failed])) as [Held];
  node.kill();
  report.table(
    `${held.count.toLocaleString("en-US")} running jobs of CI in one shard, held by ${runners} runners`,
    ["", "bytes each", "CPU us a renewal", "share of a core, every 30 s", "slowest ms"],
    [["held", held.bytesEach, held.renewUs, `${(held.coreShare * 100).toFixed(1)}%`, held.slowestMs]],
  );
  report.figure("running jobs held", held.count);
  report.figure("bytes a running job", held.bytesEach);
  report.target({ what: "running jobs held", atLeast: 200_000, got: held.count });
}
