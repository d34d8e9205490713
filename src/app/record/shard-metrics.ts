/** How loaded the shards of this node are, as metrics. */
import type { HotShards } from "#app/node/hot-shards.ts";
import type { HeavyTenants } from "#app/node/heavy-tenants.ts";
import type { MetricsRegistry } from "#edge/metrics/registry.ts";

/** Shards that are shown, the busiest first: a node may own thousands. */
const shown = 32;

export function showHotShards(registry: MetricsRegistry, hotShards: Pick<HotShards, "loads" | "hot">): void {
  const gauge = (name: string, help: string) =>
    registry.gauge({ name, help, labels: ["shard"], seriesMax: 10 * shown });
  const share = gauge("millrace_shard_loop_share", "The part of this node's time that a shard takes, from 0 to 1.");
  const commands = gauge("millrace_shard_commands_per_second", "Commands of a shard, for the busiest of this node.");
  const events = gauge("millrace_shard_events_per_second", "Logged events of a shard, for the busiest of this node.");
  const hot = registry
    .gauge({ name: "millrace_hot_shard", help: "The number of the shard that is hot; -1 if none of this node's is." })
    .with();
  let before = new Set<string>();
  registry.beforeText(() => {
    hot.set(hotShards.hot?.shard ?? -1);
    const busiest = [...hotShards.loads].toSorted(([, a], [, b]) => b.loopShare - a.loopShare).slice(0, shown);
    const now = new Set(busiest.map(([shard]) => String(shard)));
    for (const gone of before.difference(now)) for (const one of [share, commands, events]) one.with(gone).set(0);
    before = now;
    for (const [shard, load] of busiest) {
      share.with(String(shard)).set(load.loopShare);
      commands.with(String(shard)).set(load.commandsPerS);
      events.with(String(shard)).set(load.eventsPerS);
    }
  });
}

/** Of the tenants that take most of the node's time. */
export function showHeavyTenants(registry: MetricsRegistry, heavy: Pick<HeavyTenants, "loads">): void {
  const share = registry.gauge({
    name: "millrace_tenant_loop_share",
    help: "The part of this node's time that a tenant's work takes, from 0 to 1, for those that take most.",
    labels: ["tenant"],
    seriesMax: 10 * shown,
  });
  let before = new Set<string>();
  registry.beforeText(() => {
    const most = heavy.loads.slice(0, shown);
    const now = new Set(most.map(({ tenant }) => tenant));
    for (const gone of before.difference(now)) share.with(gone).set(0);
    before = now;
    for (const { tenant, loopShare } of most) share.with(tenant).set(loopShare);
  });
}
