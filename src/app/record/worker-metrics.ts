/** This node's worker in /metrics: its use, and its overhead around the commands that it runs. */
import type { BlobStore } from "#blobs/store.ts";
import type { Histogram } from "#edge/metrics/series.ts";
import type { MetricsRegistry } from "#edge/metrics/registry.ts";
import type { AttemptWatch, Moments, WatchedAttempt } from "#worker/attempt-watch.ts";
import type { WorkerStatus } from "#worker/worker.ts";

/** An action's times on this node, in milliseconds; phases that it did not reach are left out. */
type ActionTimes = {
  readonly totalMs: number;
  readonly fetchMs?: number | undefined;
  readonly runMs?: number | undefined;
  readonly uploadMs?: number | undefined;
};

const phases = ["fetch", "run", "upload"] as const;
const bounds = [0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800] as const;

type Bound = { readonly overhead: Histogram; readonly byPhase: Readonly<Record<string, Histogram>> };

export class WorkerMetrics implements AttemptWatch {
  #bound: Bound | undefined;

  /** Counts from now on. `pool` comes from its labels. */
  bind(registry: MetricsRegistry, pool: string, status: () => WorkerStatus | undefined): void {
    const gauge = (name: string, help: string) => registry.gauge({ name, help, labels: ["pool"] }).with(pool);
    const slots = gauge("millrace_worker_slots", "Tasks that this node can run at once; 0 while it takes none.");
    const running = gauge("millrace_worker_running", "Tasks that run on this node.");
    const planning = gauge("millrace_worker_planning", "Stages that this node plans, beside its tasks.");
    const telling = gauge("millrace_worker_telling", "Tasks that ended here and are not reported to their shard yet.");
    registry.beforeText(() => {
      const now = status();
      slots.set(now && !now.draining ? now.slots : 0);
      running.set(now?.running ?? 0);
      planning.set(now?.planning ?? 0);
      telling.set(now?.telling ?? 0);
    });
    const seconds = registry.histogram({
      name: "millrace_action_phase_seconds",
      help: "How long actions took here: to fetch their inputs, to run, to upload their outputs.",
      labels: ["phase"],
      seriesMax: phases.length,
      bounds,
    });
    const overhead = registry
      .histogram({
        name: "millrace_action_overhead_seconds",
        help: "The node's overhead around the commands of actions: everything in an attempt but the command itself.",
        bounds,
      })
      .with();
    this.#bound = { overhead, byPhase: Object.fromEntries(phases.map((phase) => [phase, seconds.with(phase)])) };
  }

  begin(_task: unknown, blobs: BlobStore): WatchedAttempt {
    return { blobs, ended: (moments) => this.#ended(timesOf(moments)) };
  }

  #ended({ totalMs, fetchMs, runMs, uploadMs }: ActionTimes): void {
    if (!this.#bound) return;
    const { overhead, byPhase } = this.#bound;
    for (const [phase, ms] of Object.entries({ fetch: fetchMs, run: runMs, upload: uploadMs }))
      if (ms !== undefined) byPhase[phase]?.observe(ms / 1_000);
    if (runMs !== undefined) overhead.observe(Math.max(0, totalMs - runMs) / 1_000);
  }
}

function timesOf(at: Moments): ActionTimes {
  const between = (from: keyof Moments, to: keyof Moments): number | undefined => {
    const [began, ended] = [at[from], at[to]];
    return began === undefined || ended === undefined ? undefined : Math.max(0, ended - began);
  };
  return {
    totalMs: between("workerStart", "workerCompleted") ?? 0,
    fetchMs: between("inputFetchStart", "inputFetchCompleted"),
    runMs: between("executionStart", "executionCompleted"),
    uploadMs: between("outputUploadStart", "outputUploadCompleted"),
  };
}
