/** A minute at full load, everything switched on: history, snapshots, archive. The history must keep up. */
import { median } from "#bench/measure.ts";
import type { Report } from "#bench/report.ts";
import { Rig, type Store } from "./rig.ts";
import { endToEnd } from "./throughput.ts";

/** New work is refused, and submitted again, while the history is this far behind. */
const lagMsMax = 1_000;

export async function steadyState(report: Report, store: Store, forMs: number): Promise<void> {
  await using rig = await Rig.start({ store, projector: { lagMsMax } });
  const lagsMs: number[] = [];
  const watch = setInterval(() => {
    const { shards } = rig.node.status();
    lagsMs.push(Math.max(...shards.map(({ historyLagMs }) => historyLagMs)));
  }, 1_000);
  const { perSecond, cpuUs, p50Ms, p99Ms, count } = await endToEnd(rig, { tasksPerJob: 1 }, forMs);
  clearInterval(watch);
  const third = Math.max(1, Math.floor(lagsMs.length / 3));
  // The first third is a warm-up.
  const [middle, late] = [median(lagsMs.slice(third, 2 * third)), median(lagsMs.slice(-third))];
  const worst = Math.max(0, ...lagsMs);
  report.table(
    `Steady state for ${Math.round(forMs / 1_000)} s on ${store.kind}: one-task jobs, 3 digests a commit, history on`,
    ["tasks", "tasks/s", "p50 ms", "p99 ms", "CPU us", "worst lag ms", "lag middle", "lag late", "sent back"],
    [[count, perSecond, p50Ms, p99Ms, cpuUs, worst, middle, late, rig.refused]],
  );
  report.say(`A submission is sent back while the history is more than ${lagMsMax / 1_000} s behind (default: 60 s).`);
  report.figure("steady_tasks_per_s", perSecond);
  report.figure("steady_lag_ms", worst);
  report.target({ what: "worst lag of the history in the steady state, ms", atMost: 2_000, got: worst });
  report.target({ what: "growth of the lag from the middle third to the last, ms", atMost: 500, got: late - middle });
  if (rig.reports.length > 0)
    report.say(`The node reported ${rig.reports.length} troubles, the last: ${rig.reports.at(-1)}`);
}
