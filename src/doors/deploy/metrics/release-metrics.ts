/**
 * Releases in /metrics, counted from durable events of the shards that this node owns: the sum over all nodes is the
 * whole cluster's. A part that began before this node took over its shard is not measured.
 */
import type { Job } from "#kernel/model/entities.ts";
import type { Event } from "#kernel/model/event.ts";
import type { SealedBatch } from "#shard/host/batch.ts";
import type { ShardObserver } from "#shard/host/observer.ts";
import type { HostedShard } from "#shard/host/shard.ts";
import { door, kinds } from "#doors/deploy/plan.ts";
import type { DeployFamilies } from "./families.ts";

/** Stages of one shard that are measured; more than a shard ever has. */
const followedMax = 50_000;

type Followed = { readonly job: Job; readonly ready: Map<number, number> };

export class ReleaseMetrics implements ShardObserver {
  #families: DeployFamilies | undefined;
  /** Releases that have not ended, by shard and job. */
  readonly #shards = new Map<HostedShard, Map<number, Followed>>();

  bind(families: DeployFamilies): void {
    this.#families = families;
  }

  /** Looked up when /metrics is read. */
  show(nowMs: number): void {
    const live = [...this.#shards.values()].flatMap((jobs) => [...jobs.values()]).filter(({ job }) => isRelease(job));
    const oldestMs = live.reduce((oldest, { job }) => Math.min(oldest, job.submittedAtMs), nowMs);
    this.#families?.running.set(live.length);
    this.#families?.oldest.set((nowMs - oldestMs) / 1_000);
  }

  adopted(shard: HostedShard): void {
    const jobs = new Map<number, Followed>();
    for (const job of shard.state.jobs.values())
      if (job.door === door && job.endedAtMs === 0) jobs.set(job.no, { job, ready: new Map() });
    this.#shards.set(shard, jobs);
  }

  gone(shard: HostedShard): void {
    this.#shards.delete(shard);
  }

  durable(shard: HostedShard, { events }: SealedBatch): void {
    let jobs = this.#shards.get(shard);
    if (!jobs) this.#shards.set(shard, (jobs = new Map()));
    for (const event of events) this.#count(shard, jobs, event);
  }

  #count(shard: HostedShard, jobs: Map<number, Followed>, event: Event): void {
    switch (event.kind) {
      case "job-submitted": {
        const job = event.door === door ? shard.state.jobs.get(event.job) : undefined;
        if (job && jobs.size < followedMax) jobs.set(event.job, { job, ready: new Map() });
        return;
      }
      case "stage-ready":
        jobs.get(event.job)?.ready.set(event.stage, event.at);
        return;
      case "stage-ended": {
        const followed = jobs.get(event.job);
        const readyMs = followed?.ready.get(event.stage);
        if (!followed || readyMs === undefined || event.phase !== "COMPLETED") return;
        followed.ready.delete(event.stage);
        const phase = phaseOf(followed.job, event.stage);
        if (phase !== undefined) this.#families?.phases.with(phase).observe((event.at - readyMs) / 1_000);
        return;
      }
      case "committed":
        return this.#committed(shard, event.task, event.result.payload);
      case "job-ended": {
        const followed = jobs.get(event.job);
        jobs.delete(event.job);
        if (followed && isRelease(followed.job)) this.#ended(followed.job, event.phase.toLowerCase(), event.at);
        return;
      }
      default:
    }
  }

  #ended({ name, submittedAtMs }: Job, outcome: string, atMs: number): void {
    this.#families?.releases.with(name.split(" ")[0] ?? "", outcome).add();
    this.#families?.duration.with(outcome).observe((atMs - submittedAtMs) / 1_000);
  }

  #committed(shard: HostedShard, number: number, payload: string): void {
    const kind = shard.state.tasks.get(number)?.template.kind;
    if (kind !== kinds.finish && kind !== kinds.rollback) return;
    const { outcome } = JSON.parse(payload) as { readonly outcome?: string };
    if (outcome === "rolled-back")
      this.#families?.rollbacks.with(kind === kinds.finish ? "automatic" : "by hand").add();
  }
}

/** Builds and rollbacks are jobs of the same door. */
const isRelease = ({ stages }: Job): boolean => stages.some(({ shape }) => shape.name === "finish");

function phaseOf(job: Job, stage: number): string | undefined {
  const name = isRelease(job) ? job.stages[stage]?.shape.name : undefined;
  return name?.startsWith("wave-") ? "wave" : name;
}
