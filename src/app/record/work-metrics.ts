/**
 * Work in /metrics: what waits, what runs, how long both took, and what went wrong, by class of work. Counted from
 * durable events of the shards that this node owns; the sum over all nodes is the whole cluster's.
 *
 * A class is the set of labels that its tasks require, such as `door=build,pool=gpu`. Labels come from callers, so the
 * number of classes is limited: the rest is counted as `other`.
 */
import type { Event, EventOf } from "#kernel/model/event.ts";
import type { Task } from "#kernel/model/entities.ts";
import type { Counter, Gauge, Histogram } from "#edge/metrics/series.ts";
import type { Family, MetricsRegistry } from "#edge/metrics/registry.ts";
import type { SealedBatch } from "#shard/host/batch.ts";
import type { ShardObserver } from "#shard/host/observer.ts";
import type { HostedShard } from "#shard/host/shard.ts";
import { isLastAttempt } from "./exhausted-tasks.ts";

/** In seconds: from tasks that start at once to tasks that wait for a new machine. */
const secondsBounds = [
  0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200,
] as const;
const classesMax = 100;

/** Open claims of one shard that are followed; more than a shard ever holds. */
const followedMax = 100_000;

type Followed = { readonly classed: Classed; readonly queuedAtMs: number; startedAtMs: number };

export class WorkMetrics implements ShardObserver {
  #families: Families | undefined;
  readonly #classes = new Map<string, Classed>();
  /** Live claims by token, which is unique in its shard. When a shard moves, its new owner counts their ends. */
  readonly #followed = new WeakMap<HostedShard, Map<number, Followed>>();

  /** Counts from now on. */
  bind(registry: MetricsRegistry, shards: () => Iterable<HostedShard>): void {
    this.#classes.clear();
    this.#families = familiesOf(registry);
    const queued = registry.gauge({
      name: "millrace_queue_tasks",
      help: "Tasks that are ready and wait for an executor, in the shards of this node, by class.",
      labels: ["class"],
      seriesMax: classesMax,
    });
    const claimed = registry.gauge({
      name: "millrace_claims",
      help: "Tasks that executors hold, in the shards of this node, by class.",
      labels: ["class"],
      seriesMax: classesMax,
    });
    const owned = registry.gauge({ name: "millrace_shards_owned", help: "Shards that this node serves." }).with();
    const jobs = registry.gauge({ name: "millrace_jobs_live", help: "Jobs that have not ended, in them." }).with();
    const [showQueued, showClaimed] = [shownIn(queued), shownIn(claimed)];
    registry.beforeText(() => {
      const all = [...shards()].filter(({ phase }) => phase === "serving");
      owned.set(all.length);
      jobs.set(all.reduce((sum, { state }) => sum + state.liveJobs, 0));
      const [waits, held] = countsOf(all);
      showQueued(waits);
      showClaimed(held);
    });
  }

  /** A result was not published, and never will be. */
  publicationRefused(door: string): void {
    this.#families?.refused.with(door).add();
  }

  durable(shard: HostedShard, { events }: SealedBatch): void {
    if (!this.#families) return;
    for (const event of events) this.#count(shard, event);
  }

  #count(shard: HostedShard, event: Event): void {
    switch (event.kind) {
      case "claimed":
        return this.#claimed(shard, event);
      case "started": {
        const followed = this.#of(shard).get(event.token);
        if (followed) began(followed, event.at);
        return;
      }
      case "committed":
        return this.#ended(shard, event, "committed");
      case "stage-planned":
      case "plan-closed":
      case "plan-waiting":
        return this.#ended(shard, event, "planned");
      case "attempt-ended":
        this.#exhausted(shard, event);
        return this.#ended(shard, event, event.outcome === "failed" ? event.reason : event.outcome);
      default:
    }
  }

  #claimed(shard: HostedShard, { task: number, token, at, started }: EventOf<"claimed">): void {
    const task = shard.state.tasks.get(number);
    if (!task) return;
    const classed = this.#classOf(classOf(task));
    classed.claims.add();
    const of = this.#of(shard);
    if (of.size >= followedMax) return;
    const followed = { classed, queuedAtMs: task.queuedAtMs, startedAtMs: 0 };
    of.set(token, followed);
    if (started) began(followed, at);
  }

  #ended(shard: HostedShard, event: Ended, outcome: string): void {
    const of = this.#of(shard);
    const followed = of.get(event.token);
    of.delete(event.token);
    const task = event.task === undefined ? undefined : shard.state.tasks.get(event.task);
    const classed = followed?.classed ?? (task ? this.#classOf(classOf(task)) : undefined);
    if (!classed) return;
    classed.ended(outcome);
    // A released claim did not run, even if it was granted as started.
    const hasRun = followed !== undefined && followed.startedAtMs > 0 && outcome !== "released";
    if (hasRun) classed.run.observe((event.at - followed.startedAtMs) / 1_000);
  }

  #exhausted(shard: HostedShard, event: EventOf<"attempt-ended">): void {
    const task = shard.state.tasks.get(event.task);
    if (task && isLastAttempt(event, task)) this.#families?.exhausted.with(classOf(task), event.reason).add();
  }

  #of(shard: HostedShard): Map<number, Followed> {
    let followed = this.#followed.get(shard);
    if (!followed) this.#followed.set(shard, (followed = new Map()));
    return followed;
  }

  #classOf(name: string): Classed {
    let found = this.#classes.get(name);
    if (found) return found;
    found = new Classed(this.#families as Families, name);
    if (this.#classes.size < classesMax) this.#classes.set(name, found);
    return found;
  }
}

/**
 * A class without tasks is shown as 0, not with its old value; classes without a series of their own are summed. Work
 * without requirements is always shown, because a sum over no series is undefined, and autoscalers could not use it.
 */
function shownIn(gauge: Family<Gauge>): (counts: ReadonlyMap<string, number>) => void {
  const own = new Set([textOf([])]);
  return (counts) => {
    let others = 0;
    for (const name of counts.keys()) if (own.size < classesMax) own.add(name);
    for (const name of own) gauge.with(name).set(counts.get(name) ?? 0);
    for (const [name, count] of counts) if (!own.has(name)) others += count;
    if (own.size >= classesMax) gauge.with("other").set(others);
  };
}

/** An executor may hold a claim for a while before it has a free slot: waiting ends when the task starts. */
function began(followed: Followed, atMs: number): void {
  followed.startedAtMs = atMs;
  followed.classed.wait.observe(Math.max(0, atMs - followed.queuedAtMs) / 1_000);
}

type Ended = { readonly task?: number; readonly token: number; readonly at: number };

const textOf = (requires: readonly string[]): string => requires.join(",") || "any";
const classOf = ({ template }: Task): string => textOf(template.requires);

type Families = ReturnType<typeof familiesOf>;

function familiesOf(registry: MetricsRegistry) {
  const seriesMax = classesMax;
  const labels = ["class"] as const;
  return {
    claims: registry.counter({
      name: "millrace_claims_total",
      help: "Claims granted to executors, by class.",
      labels,
      seriesMax,
    }),
    ended: registry.counter({
      name: "millrace_attempts_total",
      help: "Attempts that have ended, by class and by how: committed, planned, or why not.",
      labels: ["class", "outcome"],
      seriesMax: 500,
    }),
    expiries: registry.counter({
      name: "millrace_lease_expiries_total",
      help: "Claims whose executor was not heard from for a whole lease, by class.",
      labels,
      seriesMax,
    }),
    exhausted: registry.counter({
      name: "millrace_tasks_exhausted_total",
      help: "Tasks that failed after their last attempt, by class and by why that one ended.",
      labels: ["class", "reason"],
      seriesMax: 500,
    }),
    wait: registry.histogram({
      name: "millrace_task_wait_seconds",
      help: "How long tasks were ready before an executor started them, by class.",
      labels,
      seriesMax,
      bounds: secondsBounds,
    }),
    refused: registry.counter({
      name: "millrace_publications_refused_total",
      help: "Results that were not published because their executor asked for what their task does not allow, by door.",
      labels: ["door"],
      seriesMax: 10,
    }),
    run: registry.histogram({
      name: "millrace_task_run_seconds",
      help: "How long attempts ran, from start to end as reported to the shard, by class.",
      labels,
      seriesMax,
      bounds: secondsBounds,
    }),
  };
}

/** The series of one class, bound once. */
class Classed {
  readonly claims: Counter;
  readonly wait: Histogram;
  readonly run: Histogram;
  readonly #expiries: Counter;
  readonly #ended: Family<Counter>;
  readonly #byOutcome = new Map<string, Counter>(); // a small set: defined by the kernel
  readonly #name: string;

  constructor({ claims, wait, run, expiries, ended }: Families, name: string) {
    this.#name = name;
    this.claims = claims.with(name);
    this.wait = wait.with(name);
    this.run = run.with(name);
    this.#expiries = expiries.with(name);
    this.#ended = ended;
  }

  ended(outcome: string): void {
    let ended = this.#byOutcome.get(outcome);
    if (!ended) this.#byOutcome.set(outcome, (ended = this.#ended.with(this.#name, outcome)));
    ended.add();
    if (outcome === "expired") this.#expiries.add();
  }
}

function countsOf(shards: readonly HostedShard[]): readonly [Map<string, number>, Map<string, number>] {
  const [waits, held] = [new Map<string, number>(), new Map<string, number>()];
  const count = (counts: Map<string, number>, name: string, by: number): void =>
    void counts.set(name, (counts.get(name) ?? 0) + by);
  for (const { state } of shards) {
    for (const { requires, ready } of state.ready.waiting()) count(waits, textOf(requires), ready);
    for (const { claims } of state.executors.values())
      for (const { task } of claims.values()) count(held, classOf(task), 1);
  }
  return [waits, held];
}
