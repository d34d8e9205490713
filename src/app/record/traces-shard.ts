/**
 * Spans of a shard for a traced job: how long it waited, was claimed and was published. Derived from durable events; a
 * job whose shard moves is not followed further.
 */
import type { Event } from "#kernel/model/event.ts";
import { formatJob } from "#base/ids.ts";
import type { SealedBatch } from "#shard/host/batch.ts";
import type { ShardObserver } from "#shard/host/observer.ts";
import type { HostedShard } from "#shard/host/shard.ts";
import type { TraceOf, Tracer } from "./traces.ts";
import { parseTraceparent, type TraceContext } from "./traces-context.ts";

const followedMax = 10_000;

type Followed = {
  readonly trace: TraceContext;
  readonly submittedAtMs: number;
  readonly task: number;
  /** By token: a job may have many tasks at once. */
  readonly claims: Map<number, { readonly atMs: number; readonly executor: string }>;
  committedAtMs: number;
};

export class ShardTraces implements ShardObserver {
  readonly #tracer: Tracer;
  readonly #traceOf: TraceOf;
  /** By job; jobs of a shard that went elsewhere go with it. */
  readonly #followed = new WeakMap<HostedShard, Map<number, Followed>>();
  #count = 0;

  constructor(tracer: Tracer, traceOf: TraceOf) {
    this.#tracer = tracer;
    this.#traceOf = traceOf;
  }

  gone(shard: HostedShard): void {
    this.#count -= this.#followed.get(shard)?.size ?? 0;
    this.#followed.delete(shard);
  }

  durable(shard: HostedShard, { events, jobs }: SealedBatch): void {
    for (const [i, event] of events.entries()) {
      if (event.kind === "job-submitted") this.#submitted(shard, event);
      const followed = jobs[i] === undefined ? undefined : this.#followed.get(shard)?.get(jobs[i]);
      if (followed) this.#heard(shard, event, followed);
    }
  }

  #submitted(shard: HostedShard, event: Extract<Event, { kind: "job-submitted" }>): void {
    const { job, firstTask, at } = event;
    if (this.#count >= followedMax) return;
    const trace = parseTraceparent(this.#traceOf(event));
    if (!trace?.sampled) return;
    let followed = this.#followed.get(shard);
    if (!followed) this.#followed.set(shard, (followed = new Map()));
    followed.set(job, {
      trace,
      submittedAtMs: at,
      task: firstTask,
      claims: new Map(),
      committedAtMs: 0,
    });
    this.#count += 1;
  }

  #heard(shard: HostedShard, event: Event, followed: Followed): void {
    const { trace } = followed;
    const span = (name: string, startMs: number, endMs: number, more: Record<string, string | number> = {}): void =>
      this.#tracer.record(trace, {
        name: `shard ${name}`,
        kind: "internal",
        startMs,
        endMs,
        attributes: { "millrace.shard": shard.shard, ...more },
        error: undefined,
      });
    switch (event.kind) {
      case "claimed": {
        const task = shard.state.tasks.get(event.task);
        const queuedAtMs = task?.queuedAtMs ?? followed.submittedAtMs;
        const key = task ? { "millrace.task": task.plan.key } : {};
        span("queue", queuedAtMs, event.at, { "millrace.executor": event.executor, ...key });
        followed.claims.set(event.token, { atMs: event.at, executor: event.executor });
        return;
      }
      case "stage-planned":
      case "attempt-ended":
      case "committed": {
        const { atMs = event.at, executor = "" } = followed.claims.get(event.token) ?? {};
        followed.claims.delete(event.token);
        const outcome = event.kind === "attempt-ended" ? event.outcome : event.kind;
        span("claim", atMs, event.at, { "millrace.executor": executor, "millrace.outcome": outcome });
        if (event.kind === "committed") followed.committedAtMs = event.at;
        return;
      }
      case "published":
        return span("publish", followed.committedAtMs || event.at, event.at);
      case "job-ended":
        span("job", followed.submittedAtMs, event.at, {
          "millrace.job": formatJob(shard.shard, event.job),
          "millrace.phase": event.phase,
        });
        this.#followed.get(shard)?.delete(event.job);
        this.#count -= 1;
        return;
      default:
    }
  }
}
