/** The metrics of CI: names, help and labels. */
import type { Metrics } from "#door/door.ts";

/** Of each metric; more are counted under `other`. */
export const seriesMax = 200;

/** In seconds: from jobs that start at once to jobs of hours. */
const bounds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600] as const;

export type CiFamilies = ReturnType<typeof ciFamilies>;

export function ciFamilies(metrics: Metrics) {
  const labels = ["runs_on"] as const;
  const ofTenant = ["tenant", "runs_on"] as const;
  const plain = { labels: [] } as const;
  return {
    queued: metrics.counter({
      name: "cicd_jobs_queued_total",
      help: "Jobs of workflows that were queued, by tenant and by the labels that they ask for.",
      labels: ofTenant,
      seriesMax,
    }),
    running: metrics.gauge({
      name: "cicd_jobs_running_gauge",
      help: "Jobs that runners hold, by tenant and by labels.",
      labels: ofTenant,
      seriesMax,
    }),
    wait: metrics.histogram({
      name: "cicd_job_wait_time_seconds",
      help: "How long jobs were queued before a runner started them, by labels.",
      labels,
      seriesMax,
      bounds,
    }),
    duration: metrics.histogram({
      name: "cicd_job_duration_seconds",
      help: "How long attempts at jobs took, by labels and by how they ended: success, failure, cancelled, lost.",
      labels: ["runs_on", "conclusion"],
      seriesMax,
      bounds,
    }),
    steps: metrics.counter({
      name: "cicd_steps_total",
      help: "Steps that have ended, by how: succeeded, failed, skipped.",
      labels: ["conclusion"],
      seriesMax: 3,
    }),
    stepFailures: metrics.counter({ name: "cicd_step_failures_total", help: "Steps that failed.", ...plain }).with(),
    expirations: metrics.counter({
      name: "cicd_lease_expirations_total",
      help: "Attempts whose runner was not heard from for a whole lease, by tenant.",
      labels: ["tenant"],
      seriesMax,
    }),
    depth: metrics.gauge({
      name: "cicd_queue_depth",
      help: "Jobs that are queued now, by the labels that they ask for.",
      labels,
      seriesMax,
    }),
    drain: metrics.gauge({
      name: "cicd_estimated_drain_time_seconds",
      help: "How long the queued jobs take if as many run at once as now, each as long as the last ones did.",
      labels,
      seriesMax,
    }),
    lag: metrics
      .gauge({
        name: "cicd_scheduler_cdc_lag_seconds",
        help: "The longest time between a decision of the scheduler and its being durable, since the last look.",
        ...plain,
      })
      .with(),
    scheduleLag: metrics
      .gauge({
        name: "cicd_schedule_lag_seconds",
        help: "How long after its instant the last scheduled run was recorded.",
        ...plain,
      })
      .with(),
  };
}
