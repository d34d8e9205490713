/**
 * Pools in /metrics, on the node that keeps each: the seven gauges of GitHub's scale sets under their names, which
 * others' autoscalers and dashboards know, and what those leave out.
 */
import type { MetricsRegistry } from "#edge/metrics/registry.ts";
import type { PoolStanding } from "#pools/standing.ts";

const seriesMax = 100;

export function poolMetrics(registry: MetricsRegistry, standings: () => ReadonlyMap<string, PoolStanding>): void {
  const gauge = (name: string, help: string) => registry.gauge({ name, help, labels: ["pool"], seriesMax });
  const rows: readonly (readonly [ReturnType<typeof gauge>, (standing: PoolStanding) => number])[] = [
    [gauge("gha_available_jobs", "Jobs that wait for a machine of the pool."), ({ waiting }) => waiting],
    [gauge("gha_acquired_jobs", "Jobs that machines of the pool hold."), ({ running }) => running],
    [gauge("gha_assigned_jobs", "Jobs that the pool is to run: waiting and held."), (one) => one.waiting + one.running],
    [gauge("gha_running_jobs", "Jobs that machines of the pool run."), ({ running }) => running],
    [gauge("gha_registered_runners", "Machines that have asked for work."), ({ counts }) => counts.idle + counts.busy],
    [gauge("gha_busy_runners", "Machines that hold a job."), ({ counts }) => counts.busy],
    [gauge("gha_idle_runners", "Machines that wait for a job."), ({ counts }) => counts.idle],
    [gauge("millrace_pool_desired", "Machines that the pool is to have."), ({ desired }) => desired],
    [gauge("millrace_pool_starting", "Machines that have not asked for work yet."), ({ counts }) => counts.starting],
    [
      gauge("millrace_pool_oldest_wait_seconds", "How long the first of the waiting jobs has been ready."),
      ({ oldestForMs }) => oldestForMs / 1_000,
    ],
  ];
  const shown = new Set<string>();
  registry.beforeText(() => {
    const now = standings();
    for (const pool of now.keys()) shown.add(pool);
    // A pool that another node keeps now is that node's to show.
    for (const pool of shown)
      for (const [family, valueOf] of rows) {
        const standing = now.get(pool);
        family.with(pool).set(standing ? valueOf(standing) : 0);
      }
  });
}
