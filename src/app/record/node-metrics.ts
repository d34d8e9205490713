/** All metrics of a node's own work, gathered from its parts and shown at /metrics. */
import type { ActionIndex } from "#blobs/action-index.ts";
import type { Store } from "#blobs/store.ts";
import type { Upkeep } from "#blobs/upkeep.ts";
import type { MetricsRegistry } from "#edge/metrics/registry.ts";
import type { Node } from "#shard/node.ts";
import type { Worker } from "#worker/worker.ts";
import { StoreMetrics } from "./store-metrics.ts";
import { WorkMetrics } from "./work-metrics.ts";
import { WorkerMetrics } from "./worker-metrics.ts";

export type MetricSources = {
  readonly node: Pick<Node, "host">;
  readonly worker: () => Pick<Worker, "status"> | undefined;
  /** The worker's labels. */
  readonly labels: readonly string[];
  readonly upkeep: Pick<Upkeep, "figures"> | undefined;
};

export class NodeMetrics {
  readonly work = new WorkMetrics();
  readonly worker = new WorkerMetrics();
  readonly stored = new StoreMetrics();

  bind(registry: MetricsRegistry, { node, worker, labels, upkeep }: MetricSources): void {
    const pools = labels.filter((label) => label.startsWith("pool=")).map((label) => label.slice("pool=".length));
    this.work.bind(registry, () => node.host.shards.values());
    this.worker.bind(registry, pools.join(",") || "default", () => worker()?.status());
    this.stored.bind(registry, upkeep && (() => upkeep.figures()));
  }

  /** A door's view of the store and the index, which counts its calls. */
  countedFor<T extends { readonly store: Store; readonly index: ActionIndex }>(parts: T, door: string): T {
    return { ...parts, store: this.stored.store(parts.store, door), index: this.stored.index(parts.index) };
  }
}
