/** What the process as a whole uses, looked up when the metrics are read. */
import { monitorEventLoopDelay, performance } from "node:perf_hooks";
import type { MetricsRegistry } from "./registry.ts";

export type ProcessReading = {
  readonly cpuSeconds: number;
  readonly residentBytes: number;
  readonly heapUsedBytes: number;
  readonly heapTotalBytes: number;
  readonly externalBytes: number;
  readonly startedAtSeconds: number;
  readonly loopBusySeconds: number;
  /** Since the previous reading. */
  readonly loopDelaySeconds: { readonly p50: number; readonly p99: number; readonly max: number };
};

/** `read` is for tests; disposing of the result stops the sampling of the event loop. */
export function processMetrics(registry: MetricsRegistry, read?: () => ProcessReading): Disposable {
  const sampler = read === undefined ? processReader() : undefined;
  const reading = read ?? sampler?.read;
  const cpu = registry.counter({
    name: "process_cpu_seconds_total",
    help: "Processor time used, by all threads, in user and system mode.",
  });
  const busy = registry.counter({
    name: "millrace_event_loop_busy_seconds_total",
    help: "Time in which the event loop did not wait: its rate is how busy the main thread is.",
  });
  const delay = registry.gauge({
    name: "millrace_event_loop_delay_seconds",
    help: "How late timers were since the metrics were last read.",
    labels: ["quantile"],
  });
  const gauge = (name: string, help: string) => registry.gauge({ name, help }).with();
  const resident = gauge("process_resident_memory_bytes", "Memory that the process holds.");
  const started = gauge("process_start_time_seconds", "When the process started, in seconds since 1970.");
  const heapUsed = gauge("millrace_heap_used_bytes", "JavaScript objects in use, and those not yet collected.");
  const heapTotal = gauge("millrace_heap_total_bytes", "Memory set aside for JavaScript objects.");
  const external = gauge("millrace_external_memory_bytes", "Buffers outside the JavaScript heap.");
  registry.beforeText(() => {
    const now = reading?.();
    if (!now) return;
    cpu.with().value = now.cpuSeconds;
    busy.with().value = now.loopBusySeconds;
    resident.set(now.residentBytes);
    started.set(now.startedAtSeconds);
    heapUsed.set(now.heapUsedBytes);
    heapTotal.set(now.heapTotalBytes);
    external.set(now.externalBytes);
    delay.with("0.5").set(now.loopDelaySeconds.p50);
    delay.with("0.99").set(now.loopDelaySeconds.p99);
    delay.with("1").set(now.loopDelaySeconds.max);
  });
  return { [Symbol.dispose]: () => sampler?.stop() };
}

/** Each sample wakes the node: at fifty a second that was most of an idle node's work. */
const resolutionMs = 100;

function processReader(): { readonly read: () => ProcessReading; readonly stop: () => void } {
  const delays = monitorEventLoopDelay({ resolution: resolutionMs });
  delays.enable();
  // A sample is the time between two timer ticks, so subtract the requested interval.
  const late = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e9 - resolutionMs / 1e3) || 0;
  return {
    stop: () => void delays.disable(),
    read() {
      const { user, system } = process.cpuUsage();
      const memory = process.memoryUsage();
      const reading: ProcessReading = {
        cpuSeconds: (user + system) / 1e6,
        residentBytes: memory.rss,
        heapUsedBytes: memory.heapUsed,
        heapTotalBytes: memory.heapTotal,
        externalBytes: memory.external,
        startedAtSeconds: performance.timeOrigin / 1e3,
        loopBusySeconds: performance.eventLoopUtilization().active / 1e3,
        loopDelaySeconds: {
          p50: delays.count === 0 ? 0 : late(delays.percentile(50)),
          p99: delays.count === 0 ? 0 : late(delays.percentile(99)),
          max: delays.count === 0 ? 0 : late(delays.max),
        },
      };
      delays.reset();
      return reading;
    },
  };
}
