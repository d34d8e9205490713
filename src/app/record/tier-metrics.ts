/** Calls to the tier behind the store, and their outcomes. */
import type { Clock } from "#base/clock.ts";
import type { StoreCall, StoreObserver } from "#blobs/observed.ts";
import type { MetricsRegistry } from "#edge/metrics/registry.ts";

export type EndedTierCall = {
  readonly call: StoreCall["name"];
  readonly outcome: string;
  readonly tookMs: number;
  /** Of blobs, in or out. */
  readonly bytes: number;
};

export type TierMetrics = {
  /** A call to the tier has ended, made for the tenant. */
  ended(call: EndedTierCall, tenant: string): void;
  /** A blob was read from the node's own disk or had to be fetched; "peer" in addition if another node served it. */
  read(from: "near" | "far" | "peer"): void;
};

const latencyBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60] as const;

/** Callers choose tenant names, so only a limited number have series of their own. */
const tenantsMax = 100;

export function tierMetrics(registry: MetricsRegistry, tier: string): TierMetrics {
  const calls = registry.counter({
    name: "millrace_tier_calls_total",
    help: "Calls to the authoritative tier, by how they ended.",
    labels: ["tier", "call", "outcome"],
    seriesMax: 100,
  });
  const seconds = registry.histogram({
    name: "millrace_tier_call_seconds",
    help: "How long calls to the authoritative tier took.",
    labels: ["tier", "call"],
    seriesMax: 20,
    bounds: latencyBounds,
  });
  const bytes = registry.counter({
    name: "millrace_tier_bytes_total",
    help: "Bytes of blobs read from and written to the authoritative tier, by tenant.",
    labels: ["tier", "call", "tenant"],
    seriesMax: 400,
  });
  const reads = registry.counter({
    name: "millrace_tier_reads_total",
    help: "Reads of blobs, by whether they were near or had to be fetched (far), and fetches that a peer served.",
    labels: ["from"],
    seriesMax: 4,
  });
  const tenants = new Set<string>();
  const named = (tenant: string): string => {
    if (tenants.size < tenantsMax) tenants.add(tenant);
    return tenants.has(tenant) ? tenant : "other";
  };
  return {
    ended(one, tenant) {
      calls.with(tier, one.call, one.outcome).add();
      seconds.with(tier, one.call).observe(one.tookMs / 1_000);
      if (one.bytes > 0) bytes.with(tier, one.call, named(tenant)).add(one.bytes);
    },
    read: (from) => reads.with(from).add(),
  };
}

/** Counts nothing until metrics are bound. */
export class LateTierMetrics implements TierMetrics {
  #metrics: TierMetrics | undefined;

  bind(metrics: TierMetrics): void {
    this.#metrics = metrics;
  }

  ended(call: EndedTierCall, tenant: string): void {
    this.#metrics?.ended(call, tenant);
  }

  observer(clock: Clock, tenant: string): StoreObserver {
    return {
      begin: ({ name: call }) => {
        const beganMs = clock.monotonicMs();
        return {
          ended: (outcome, bytes) =>
            this.ended({ call, outcome, tookMs: clock.monotonicMs() - beganMs, bytes }, tenant),
        };
      },
    };
  }

  read(from: "near" | "far" | "peer"): void {
    this.#metrics?.read(from);
  }
}
