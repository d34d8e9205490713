/** The metrics of releases and machines: names, help and labels. */
import type { Metrics } from "#door/door.ts";

/** In seconds: the budget of a release is half an hour. */
const bounds = [1, 5, 10, 30, 60, 120, 300, 600, 900, 1_200, 1_800, 2_700, 3_600, 7_200] as const;
const servicesMax = 200;

export type DeployFamilies = ReturnType<typeof deployFamilies>;

export function deployFamilies(metrics: Metrics) {
  return {
    releases: metrics.counter({
      name: "millrace_deploy_releases_total",
      help: "Releases that have ended, by service and by how: succeeded, failed, cancelled.",
      labels: ["service", "outcome"],
      seriesMax: servicesMax,
    }),
    duration: metrics.histogram({
      name: "millrace_deploy_release_seconds",
      help: "How long releases took from their submission to their end, by how they ended.",
      labels: ["outcome"],
      bounds,
    }),
    phases: metrics.histogram({
      name: "millrace_deploy_phase_seconds",
      help: "How long the parts of a release took: build, replicate, wave (bake included), finish.",
      labels: ["phase"],
      bounds,
    }),
    rollbacks: metrics.counter({
      name: "millrace_deploy_rollbacks_total",
      help: "Rollbacks that have ended: automatic, after a release that failed, or by hand.",
      labels: ["cause"],
    }),
    running: metrics
      .gauge({ name: "millrace_deploy_releases_running", help: "Releases that have begun and not ended." })
      .with(),
    oldest: metrics
      .gauge({ name: "millrace_deploy_oldest_release_seconds", help: "How long ago the oldest of them was submitted." })
      .with(),
    drift: metrics
      .gauge({
        name: "millrace_deploy_drift_machines",
        help: "Machines of this node that run another version than their goal says, pinned ones included.",
      })
      .with(),
    pinned: metrics
      .gauge({ name: "millrace_deploy_pinned_machines", help: "Machines of this node that are pinned to a version." })
      .with(),
    machines: metrics.gauge({
      name: "millrace_deploy_machines",
      help: "Machines that this node knows: attached, and silent ones, which are not attached at the moment.",
      labels: ["state"],
    }),
    sent: metrics
      .counter({ name: "millrace_deploy_origin_bytes_total", help: "Bytes of units that this node sent to machines." })
      .with(),
    swarms: metrics
      .gauge({ name: "millrace_deploy_swarms", help: "Releases whose machines this node tells where to fetch from." })
      .with(),
    refused: metrics
      .counter({
        name: "millrace_deploy_machines_refused_total",
        help: "Calls in the name of a machine that were refused: another machine's key, or too many.",
      })
      .with(),
  };
}
