/** What the deploy door shows at /metrics. */
import type { Metrics } from "#door/door.ts";
import type { FleetDesk } from "./fleet/desk.ts";
import type { MachineBook } from "./fleet/machine-book.ts";
import type { Origin } from "./swarm/origin.ts";
import type { SwarmDesk } from "./swarm/swarm-desk.ts";

export type Shown = {
  readonly desk: Pick<FleetDesk, "counts">;
  readonly swarms: Pick<SwarmDesk, "open">;
  readonly origin: Pick<Origin, "sentBytes">;
  readonly book: Pick<MachineBook, "refusals">;
};

export function deployMetrics(metrics: Metrics, { desk, swarms, origin, book }: Shown): void {
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
  const refused = metrics
    .counter({
      name: "millrace_deploy_machines_refused_total",
      help: "Calls in the name of a machine that were refused: another machine's key, or too many.",
    })
    .with();
  let before = 0;
  let refusedBefore = 0;
  metrics.beforeText(() => {
    const { attached, silent } = desk.counts();
    machines.with("attached").set(attached);
    machines.with("silent").set(silent);
    open.set(swarms.open);
    sent.add(origin.sentBytes - before);
    before = origin.sentBytes;
    refused.add(book.refusals - refusedBefore);
    refusedBefore = book.refusals;
  });
}
