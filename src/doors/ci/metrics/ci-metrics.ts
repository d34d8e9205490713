/**
 * Jobs of workflows in /metrics, under the names that operators of CI know. Counted from durable events of the shards
 * that this node owns: the sum over all nodes is the whole cluster's.
 *
 * `runs_on` is what jobs ask for. It comes from workflows, so the number of series is limited: the rest is counted
 * under `other`.
 */
import type { Metrics } from "#door/door.ts";
import type { Event, EventOf } from "#kernel/model/event.ts";
import type { Task } from "#kernel/model/entities.ts";
import type { SealedBatch } from "#shard/host/batch.ts";
import type { ShardObserver } from "#shard/host/observer.ts";
import type { HostedShard } from "#shard/host/shard.ts";
import { kinds, taskLabel } from "#doors/ci/plan.ts";
import { readCellResult } from "#doors/ci/result.ts";
import { runnerLabels } from "#doors/ci/why/labels.ts";
import { type CiFamilies, ciFamilies, seriesMax } from "./families.ts";
import { DrainEstimate } from "./drain.ts";

type Followed = { readonly runsOn: string; readonly tenant: string; readonly queuedAtMs: number; startedAtMs: number };

/** Open claims of one shard that are followed; more than a shard ever holds. */
const followedMax = 100_000;

export class CiMetrics implements ShardObserver {
  #families: CiFamilies | undefined;
  readonly #shards = new Set<HostedShard>();
  /** By token, which is unique in its shard. */
  readonly #followed = new WeakMap<HostedShard, Map<number, Followed>>();
  readonly #drain = new DrainEstimate();
  /** The longest since /metrics was read. */
  #lagMs = 0;

  bind(metrics: Metrics): void {
    const families = ciFamilies(metrics);
    this.#families = families;
    const shownRunning = new Set<string>();
    const shownQueued = new Set<string>();
    metrics.beforeText(() => {
      const { running, queued } = this.#counts();
      for (const [key, count] of withGone(running, shownRunning)) {
        const [tenant = "", runsOn = ""] = key.split("\n");
        families.running.with(tenant, runsOn).set(count);
      }
      const byLabels = sumBy(running, (key) => key.split("\n")[1] ?? "");
      for (const [runsOn, depth] of withGone(queued, shownQueued)) {
        families.depth.with(runsOn).set(depth);
        families.drain.with(runsOn).set(this.#drain.seconds(runsOn, depth, byLabels.get(runsOn) ?? 0));
      }
      families.lag.set(this.#lagMs / 1_000);
      this.#lagMs = 0;
    });
  }

  /** A scheduled run was recorded so long after its instant. */
  scheduled(lagMs: number): void {
    this.#families?.scheduleLag.set(lagMs / 1_000);
  }

  adopted(shard: HostedShard): void {
    this.#shards.add(shard);
  }

  gone(shard: HostedShard): void {
    this.#shards.delete(shard);
    this.#followed.delete(shard);
  }

  durable(shard: HostedShard, { events }: SealedBatch): void {
    this.#shards.add(shard);
    const families = this.#families;
    if (!families) return;
    const first = events.find((event) => "at" in event);
    if (first && "at" in first) this.#lagMs = Math.max(this.#lagMs, shard.nowMs() - first.at);
    for (const event of events) this.#count(shard, event, families);
  }

  #count(shard: HostedShard, event: Event, families: CiFamilies): void {
    switch (event.kind) {
      case "stage-planned":
        return planned(shard, event, families);
      case "claimed":
        return this.#claimed(shard, event, families);
      case "started": {
        const followed = this.#of(shard).get(event.token);
        if (followed && followed.startedAtMs === 0) began(followed, event.at, families);
        return;
      }
      case "reported":
        if (this.#of(shard).has(event.token)) reported(event, families);
        return;
      case "committed": {
        const followed = this.#taken(shard, event.token);
        if (followed) this.#ended(followed, event.at, conclusionOf(event.result.payload), families);
        return;
      }
      case "attempt-ended": {
        const followed = this.#taken(shard, event.token);
        if (!followed) return;
        if (event.outcome === "expired") families.expirations.with(followed.tenant).add();
        this.#ended(followed, event.at, endings[event.outcome] ?? "failure", families);
        return;
      }
      default:
    }
  }

  #claimed(shard: HostedShard, { task: number, token, at, started }: EventOf<"claimed">, families: CiFamilies): void {
    const task = shard.state.tasks.get(number);
    const of = this.#of(shard);
    if (task?.template.kind !== kinds.job || of.size >= followedMax) return;
    const tenant = task.stage.job.tenant.name;
    const followed = { runsOn: runsOnOf(task.template), tenant, queuedAtMs: task.queuedAtMs, startedAtMs: 0 };
    of.set(token, followed);
    if (started) began(followed, at, families);
  }

  /** An attempt that never started, or was given back, took no time. */
  #ended({ runsOn, startedAtMs }: Followed, atMs: number, conclusion: string, families: CiFamilies): void {
    if (startedAtMs === 0 || conclusion === "released") return;
    const tookMs = Math.max(0, atMs - startedAtMs);
    families.duration.with(runsOn, conclusion).observe(tookMs / 1_000);
    this.#drain.ended(runsOn, tookMs);
  }

  #of(shard: HostedShard): Map<number, Followed> {
    let followed = this.#followed.get(shard);
    if (!followed) this.#followed.set(shard, (followed = new Map()));
    return followed;
  }

  #taken(shard: HostedShard, token: number): Followed | undefined {
    const of = this.#of(shard);
    const followed = of.get(token);
    of.delete(token);
    return followed;
  }

  #counts(): { readonly running: Map<string, number>; readonly queued: Map<string, number> } {
    const [running, queued] = [new Map<string, number>(), new Map<string, number>()];
    for (const { state, phase } of this.#shards) {
      if (phase !== "serving") continue;
      for (const { requires, ready } of state.ready.waiting())
        if (requires.includes(taskLabel)) add(queued, runsOnOf({ requires }), ready);
      for (const { claims } of state.executors.values())
        for (const { task } of claims.values())
          if (task.template.kind === kinds.job)
            add(running, `${task.stage.job.tenant.name}\n${runsOnOf(task.template)}`, 1);
    }
    return { running, queued };
  }
}

const runsOnOf = ({ requires }: Pick<Task["template"], "requires">): string =>
  runnerLabels(requires).join(",") || "any";

const endings: Readonly<Record<string, string>> = { cancelled: "cancelled", released: "released", expired: "lost" };

function planned(shard: HostedShard, { job, set, sets }: EventOf<"stage-planned">, families: CiFamilies): void {
  const tenant = shard.state.jobs.get(job)?.tenant.name ?? "";
  for (const { template, tasks = [] } of sets ?? (set ? [set] : []))
    if (template.kind === kinds.job) families.queued.with(tenant, runsOnOf(template)).add(tasks.length);
}

function began(followed: Followed, atMs: number, families: CiFamilies): void {
  followed.startedAtMs = atMs;
  families.wait.with(followed.runsOn).observe(Math.max(0, atMs - followed.queuedAtMs) / 1_000);
}

function reported({ steps }: EventOf<"reported">, families: CiFamilies): void {
  for (const { status } of steps) {
    if (status === "succeeded" || status === "failed" || status === "skipped") families.steps.with(status).add();
    if (status === "failed") families.stepFailures.add();
  }
}

/** A cell that may fail and failed is a failure here: it took the time of one. */
const conclusionOf = (payload: string): string => readCellResult(payload)?.result ?? "failure";

const add = (counts: Map<string, number>, key: string, by: number): void =>
  void counts.set(key, (counts.get(key) ?? 0) + by);

function sumBy(counts: ReadonlyMap<string, number>, keyOf: (key: string) => string): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const [key, count] of counts) add(sums, keyOf(key), count);
  return sums;
}

/** With 0 for what was shown before and is no longer there. */
function withGone(counts: ReadonlyMap<string, number>, shown: Set<string>): ReadonlyMap<string, number> {
  for (const key of counts.keys()) if (shown.size < seriesMax) shown.add(key);
  const all = new Map([...shown].map((key) => [key, 0]));
  for (const [key, count] of counts) add(all, shown.has(key) ? key : "other\nother", count);
  return all;
}
