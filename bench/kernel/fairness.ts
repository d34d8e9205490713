/** How long does one task of a small tenant wait while a big one has a hundred thousand queued? */
import { systemClock } from "#door/system-clock.ts";
import { percentile } from "#bench/measure.ts";
import type { Report } from "#bench/report.ts";
import { Rig } from "./rig.ts";
import { commitTasks, reserveTasks, submitJob } from "./work.ts";

const executors = 16;
const claim = 10;

export async function measureFairness(report: Report, queued: number, samples: number): Promise<void> {
  await using rig = await Rig.start({ store: { kind: "sqlite" } });
  for (let i = 0; i < queued; i += 1_000) await submitJob(rig, 0, 1_000, { tenant: "big" });
  const granted = new Map<number, () => void>();
  const ahead = { count: 0 };
  let isOver = false;
  const executor = async (no: number): Promise<void> => {
    const name = `executor-${no}`;
    while (!isOver) {
      const grants = await reserveTasks(rig, 0, { executor: name, count: claim });
      for (const { job, tenant } of grants) {
        if (tenant === "big") ahead.count += 1;
        else granted.get(job)?.();
      }
      await commitTasks(rig, 0, name, grants);
    }
  };
  const all = Promise.all(Array.from({ length: executors }, (_, no) => executor(no)));
  await systemClock.sleep(300);
  const waitsMs: number[] = [];
  const passed: number[] = [];
  for (let i = 0; i < samples; i += 1) {
    const startedMono = performance.now();
    const { job } = await submitJob(rig, 0, 1, { tenant: "small" });
    const before = ahead.count;
    await new Promise<void>((resolve) => granted.set(job, resolve));
    waitsMs.push(performance.now() - startedMono);
    passed.push(ahead.count - before);
  }
  const left = rig.node.host.shards.get(0)?.state.tenants.get("big")?.queued ?? 0;
  isOver = true;
  await all;
  report.table(
    `One-task jobs of a small tenant while another has ${left.toLocaleString("en-US")} or more tasks in line`,
    ["", "p50 ms", "p99 ms", "tasks let ahead p50", "most"],
    [
      [
        "submit to grant",
        percentile(waitsMs, 0.5),
        percentile(waitsMs, 0.99),
        percentile(passed, 0.5),
        Math.max(...passed),
      ],
    ],
  );
  report.figure("small_tenant_wait_p99_ms", percentile(waitsMs, 0.99));
}
