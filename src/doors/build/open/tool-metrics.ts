/** Tools that stay for more than one action, in /metrics. */
import type { Metrics } from "#door/door.ts";
import type { ToolCounts } from "#worker/tool/tools.ts";

export function toolMetrics(metrics: Metrics, counts: () => ToolCounts): void {
  const live = metrics.gauge({
    name: "millrace_tools",
    help: "Tools that stay for more than one action, by whether an action uses them.",
    labels: ["state"],
    seriesMax: 2,
  });
  const requests = metrics.counter({
    name: "millrace_tool_requests_total",
    help: "Actions run by such tools: by a running one (kept), or by one that was started for it.",
    labels: ["tool"],
    seriesMax: 2,
  });
  const broken = metrics.counter({
    name: "millrace_tools_broken_total",
    help: "Tools that died or misbehaved; their actions were run without them.",
  });
  const [busy, idle, kept, started, lost] = [
    live.with("busy"),
    live.with("idle"),
    requests.with("kept"),
    requests.with("started"),
    broken.with(),
  ];
  let before = { kept: 0, started: 0, broken: 0 };
  metrics.beforeText(() => {
    const now = counts();
    busy.set(now.lent);
    idle.set(now.idle);
    kept.add(now.kept - before.kept);
    started.add(now.started - before.started);
    lost.add(now.broken - before.broken);
    before = now;
  });
}
