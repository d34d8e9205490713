/** What the deploy door shows at /metrics. */
import type { Metrics } from "#door/door.ts";
import type { FleetDesk } from "./fleet/desk.ts";
import type { Origin } from "./swarm/origin.ts";
import type { SwarmDesk } from "./swarm/swarm-desk.ts";

export type Shown = {
  readonly desk: Pick<FleetDesk, "counts">;
  readonly swarms: Pick<SwarmDesk, "open">;
  readonly origin: Pick<Origin, "sentBytes">;
};

export function deployMetrics(metrics: Metrics, { desk, swarms, origin }: Shown): void {
  const machines = metrics.gauge({
    name: "millrace_deploy_machines",
    help: "Machines that this node knows: attached, and silent ones, which are not attached at the moment.",
    labels: ["state"],
  });
  const sent = metrics
    .counter({ name: "millrace_deploy_origin_bytes_total", help: "Bytes of units that this node sent to machines." })
    .with();
  const open = metrics
    .gauge({ name: "millrace_deploy_swarms", help: "Releases whose machines this node tells where to fetch from." })
    .with();
  let before = 0;
  metrics.beforeText(() => {
    const { attached, silent } = desk.counts();
    machines.with("attached").set(attached);
    machines.with("silent").set(silent);
    open.set(swarms.open);
    sent.add(origin.sentBytes - before);
    before = origin.sentBytes;
  });
}
