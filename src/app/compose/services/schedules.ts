/** The timer of schedules on a node, and its metrics. */
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import type { Door } from "#door/door.ts";
import type { MetricsRegistry } from "#edge/metrics/registry.ts";
import type { Records } from "#records/watch.ts";
import { schedulesIn, type Schedules } from "#schedules/schedule.ts";
import { ScheduleTimer, type TimerEvent } from "#schedules/timer.ts";
import { shardOf, type WorkClient } from "#shard/client/client.ts";
import type { Node } from "#shard/node.ts";
import { isRejected } from "#shard/work/rejected.ts";
import { scheduledOrder } from "#app/work/scheduled-order.ts";

export type RunningSchedules = {
  readonly schedules: Schedules;
  readonly timer: ScheduleTimer;
  readonly show: (registry: MetricsRegistry) => void;
};

export function startSchedules(parts: {
  readonly records: Records;
  readonly clock: Clock;
  readonly node: Pick<Node, "keeper" | "cluster">;
  readonly client: Pick<WorkClient, "submit">;
  readonly doors: readonly Door[];
  readonly log: (line: string) => void;
}): RunningSchedules {
  const { records, clock, node, client, doors, log } = parts;
  const schedules = schedulesIn(records);
  let observed: ((event: TimerEvent) => void) | undefined;
  const timer = new ScheduleTimer({
    schedules,
    clock,
    log,
    owns: (key) => node.keeper.held.has(shardOf(`schedule ${key}`, node.cluster.shards)),
    async start(schedule, { key }) {
      try {
        return await client.submit(scheduledOrder(schedule, key, doors));
      } catch (error) {
        if (isRejected(error) && !("retryAfterMs" in error.rejection))
          throw new Fault("invalid", "start a scheduled job", { why: error.message }, error);
        throw error;
      }
    },
    observe: (event) => observed?.(event),
  });
  return { schedules, timer, show: (registry) => void (observed = metricsIn(registry)) };
}

function metricsIn(registry: MetricsRegistry): (event: TimerEvent) => void {
  const instants = registry.counter({
    name: "millrace_schedule_instants_total",
    help: "Instants of schedules that this node looked after, by outcome.",
    labels: ["outcome"],
  });
  const lag = registry.gauge({
    name: "millrace_schedule_lag_seconds",
    help: "How long after its instant the last scheduled job was recorded.",
  });
  return (event) => {
    instants.with(event.kind).add(event.kind === "skipped" ? event.count : 1);
    if (event.kind === "started") lag.with().set(event.lagMs / 1_000);
  };
}
