/** Reports that this node refuses work because a limit is reached: in its log and in /metrics. */
import type { Clock } from "#base/clock.ts";
import { formatSize } from "#base/units.ts";
import type { MetricsRegistry } from "#edge/metrics/registry.ts";
import type { Counter } from "#edge/metrics/series.ts";
import type { Family } from "#edge/metrics/registry.ts";
import type { Memory } from "#kernel/memory/memory.ts";
import type { Rejection } from "#kernel/model/rejection.ts";
import type { ShardObserver } from "#shard/host/observer.ts";
import type { HostedShard } from "#shard/host/shard.ts";

/** Repeated this often while it continues; over when nothing was refused for as long. */
const everyMs = 60_000;

export type SheddingPorts = { readonly clock: Clock; readonly memory: Memory; readonly log: (line: string) => void };

export class Shedding implements ShardObserver {
  readonly #ports: SheddingPorts;
  #counted: Family<Counter> | undefined;
  #refused = 0;
  #sinceLastLine = 0;
  #cancel: (() => void) | undefined;

  constructor(ports: SheddingPorts) {
    this.#ports = ports;
  }

  bind(registry: MetricsRegistry): void {
    const { memory } = this.#ports;
    this.#counted = registry.counter({
      name: "millrace_work_refused_total",
      help: "Commands that shards of this node refused because something is full, by what: memory, queue, tasks, ...",
      labels: ["what"],
      seriesMax: 20,
    });
    const used = registry.gauge({
      name: "millrace_work_memory_bytes",
      help: "Memory that work takes in the shards of this node, estimated.",
    });
    const most = registry.gauge({
      name: "millrace_work_memory_max_bytes",
      help: "Memory that work may take before new work is refused.",
    });
    registry.beforeText(() => {
      used.with().set(memory.bytes);
      most.with().set(memory.bytesMax);
    });
  }

  /** Commands refused since the node started. */
  get refusals(): number {
    return this.#refused;
  }

  refused(_shard: HostedShard, rejection: Rejection): void {
    const what = whatIsFull(rejection);
    if (what === undefined) return;
    this.#refused += 1;
    this.#sinceLastLine += 1;
    this.#counted?.with(what).add();
    if (this.#cancel) return;
    this.#say(`new work is refused, for the first time now: ${describe(rejection)}`);
    this.#sinceLastLine = 0;
    this.#wait();
  }

  adopted({ state }: HostedShard): void {
    const { memory } = this.#ports;
    if (state.bytes > 0 && memory.isFull)
      this.#say(
        `shard ${state.shard} was taken over although memory is full: new work is refused until some has ended`,
      );
  }

  close(): void {
    this.#cancel?.();
  }

  #wait(): void {
    this.#cancel = this.#ports.clock.after(everyMs, () => {
      this.#cancel = undefined;
      if (this.#sinceLastLine === 0) return this.#say("nothing was refused for a minute: new work is accepted again");
      this.#say(`new work is refused, ${this.#sinceLastLine} times in the last minute`);
      this.#sinceLastLine = 0;
      this.#wait();
    });
  }

  #say(line: string): void {
    const { bytes, bytesMax } = this.#ports.memory;
    this.#ports.log(`${line} (memory of work: ${formatSize(bytes)} of ${formatSize(bytesMax)})`);
  }
}

/** A label from a small set: names that callers choose are not included. */
function whatIsFull(rejection: Rejection): string | undefined {
  if (rejection.kind === "queue-full") return "queue";
  if (rejection.kind !== "shard-full") return undefined;
  return rejection.what.startsWith("memory") ? "memory" : rejection.what;
}

const describe = (rejection: Rejection): string =>
  rejection.kind === "queue-full"
    ? `tenant ${rejection.tenant} has ${rejection.queuedMax} tasks waiting`
    : rejection.kind === "shard-full"
      ? `no room for ${rejection.what}`
      : rejection.kind;
