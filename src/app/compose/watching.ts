/** What a node records about its own work: metrics always, traces if a collector is configured. */
import type { Clock } from "#base/clock.ts";
import type { Random } from "#base/random.ts";
import type { CallTraces } from "#door/ports.ts";
import { Log } from "#edge/log/log.ts";
import type { Memory } from "#kernel/memory/memory.ts";
import type { MetricsRegistry } from "#edge/metrics/registry.ts";
import type { ShardObserver } from "#shard/host/observer.ts";
import type { AttemptWatch } from "#worker/attempt-watch.ts";
import type { Config } from "#app/config/config.ts";
import { ExhaustedTasks } from "#app/record/exhausted-tasks.ts";
import { NodeMetrics, type MetricSources } from "#app/record/node-metrics.ts";
import { Shedding } from "#app/work/shedding.ts";
import type { TraceOf, Traces } from "#app/record/traces.ts";

export type Watching = {
  readonly metrics: NodeMetrics;
  /** Follows attempts that this node runs. */
  readonly watch: AttemptWatch;
  /** Follow the shards that it owns. */
  readonly observers: readonly ShardObserver[];
  /** Follows calls; undefined without traces. */
  readonly calls: CallTraces | undefined;
  show(registry: MetricsRegistry, sources: MetricSources): void;
  readonly shedding: Shedding;
  close(): Promise<void>;
};

export type WatchingPorts = {
  readonly name: string;
  readonly clock: Clock;
  readonly random: Random;
  /** Memory limit for the work of all shards here. */
  readonly memory: Memory;
  /** The trace of a job that was submitted before submissions had one: its door may find it in the spec. */
  readonly traceIn: (door: string, spec: string) => string | undefined;
  readonly log: (line: string) => void;
};

export async function openWatching({ traces }: Config, ports: WatchingPorts): Promise<Watching> {
  const metrics = new NodeMetrics();
  const log = new Log((line) => ports.log(line.trimEnd()), ports.clock);
  const shedding = new Shedding(ports);
  const show: Watching["show"] = (registry, sources) => {
    metrics.bind(registry, sources);
    shedding.bind(registry);
  };
  const alone: Watching = {
    metrics,
    watch: metrics.worker,
    observers: [metrics.work, shedding, new ExhaustedTasks(log)],
    calls: undefined,
    show,
    shedding,
    async close() {
      shedding.close();
      log[Symbol.dispose]();
    },
  };
  return traces ? await withTraces(alone, traces, ports) : alone;
}

/** Imported on demand: traces are not loaded if they are not used. */
async function withTraces(
  alone: Watching,
  config: NonNullable<Config["traces"]>,
  ports: WatchingPorts,
): Promise<Watching> {
  const [{ openTraces }, { ShardTraces }, { WorkerTraces }] = await Promise.all([
    import("#app/record/traces.ts"),
    import("#app/record/traces-shard.ts"),
    import("#app/record/traces-worker.ts"),
  ]);
  const traces = await openTraces(config, ports);
  const { tracer } = traces;
  const traceOf: TraceOf = ({ trace, door, spec }) => trace ?? ports.traceIn(door, spec);
  return {
    ...alone,
    watch: new WorkerTraces(tracer, { clock: ports.clock, worker: ports.name, traceOf }, alone.watch),
    observers: [...alone.observers, new ShardTraces(tracer, traceOf)],
    calls: callTraces(traces),
    show(registry, sources) {
      alone.show(registry, sources);
      traces.show(registry);
    },
    async close() {
      await alone.close();
      await traces.close();
    },
  };
}

const callTraces = ({ tracer }: Traces): CallTraces => ({
  begin: (method, traceparent) => {
    const attributes = { "rpc.system": "grpc", "rpc.method": method };
    return tracer.begin(traceparent, { name: `edge ${method}`, kind: "server", attributes });
  },
});
