/** The mesh in /metrics: read at each scrape. A node without a mesh shows no series. */
import type { MetricsRegistry } from "#edge/metrics/registry.ts";
import type { PeersView } from "#app/compose/mesh.ts";

export function meshMetrics(registry: MetricsRegistry, peers: () => PeersView | undefined): void {
  const members = registry.gauge({
    name: "millrace_mesh_members",
    help: "Members of the mesh as this node sees them, by state.",
    labels: ["state"],
  });
  const health = registry.gauge({
    name: "millrace_mesh_health_score",
    help: "Local health score of this node: 0 is best, higher means that it trusts its own probes less.",
    labels: ["node"],
  });
  const events = registry.counter({
    name: "millrace_mesh_events_total",
    help: "Events in the mesh: probes, suspicions, deaths, refused and dropped messages.",
    labels: ["event"],
  });
  const counted = new Map<string, number>();
  registry.beforeText(() => {
    const view = peers();
    if (!view) return;
    for (const state of ["alive", "suspect", "dead", "left"])
      members.with(state).set(view.peers.filter((peer) => peer.state === state).length);
    health.with(view.name).set(view.health);
    const { counts, packetsDropped, streamsDropped } = view;
    for (const [event, count] of Object.entries({ ...counts, packetsDropped, streamsDropped })) {
      events.with(event).add(count - (counted.get(event) ?? 0));
      counted.set(event, count);
    }
  });
}
