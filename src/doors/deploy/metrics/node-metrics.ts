/** What the deploy door of this node shows at /metrics. */
import type { Clock } from "#base/clock.ts";
import type { Metrics } from "#door/door.ts";
import type { FleetDesk } from "#doors/deploy/fleet/desk.ts";
import type { MachineBook } from "#doors/deploy/fleet/machine-book.ts";
import type { Upkeep } from "#doors/deploy/fleet/upkeep.ts";
import type { Origin } from "#doors/deploy/swarm/origin.ts";
import type { SwarmDesk } from "#doors/deploy/swarm/swarm-desk.ts";
import { deployFamilies } from "./families.ts";
import type { ReleaseMetrics } from "./release-metrics.ts";

export type Shown = {
  readonly desk: Pick<FleetDesk, "counts">;
  readonly swarms: Pick<SwarmDesk, "open">;
  readonly origin: Pick<Origin, "sentBytes">;
  readonly book: Pick<MachineBook, "refusals">;
  readonly upkeep: Pick<Upkeep, "found">;
  readonly releases: ReleaseMetrics;
  readonly clock: Pick<Clock, "wallMs">;
};

export function deployMetrics(metrics: Metrics, shown: Shown): void {
  const { desk, swarms, origin, book, upkeep, releases, clock } = shown;
  const families = deployFamilies(metrics);
  releases.bind(families);
  let before = 0;
  let refusedBefore = 0;
  metrics.beforeText(() => {
    const { attached, silent } = desk.counts();
    families.machines.with("attached").set(attached);
    families.machines.with("silent").set(silent);
    families.swarms.set(swarms.open);
    families.sent.add(origin.sentBytes - before);
    before = origin.sentBytes;
    families.refused.add(book.refusals - refusedBefore);
    refusedBefore = book.refusals;
    families.drift.set(upkeep.found.drift);
    families.pinned.set(upkeep.found.pinned);
    releases.show(clock.wallMs());
  });
}
