/** Spans of a worker for a traced action, and of its calls to the store. */
import type { Clock } from "#base/clock.ts";
import { observed } from "#blobs/observed.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { Granted } from "#shard/client/executor.ts";
import type { AttemptWatch, Moments, WatchedAttempt } from "#worker/attempt-watch.ts";
import type { TraceOf, Tracer } from "./traces.ts";
import { newSpanId, parseTraceparent, type TraceContext } from "./traces-context.ts";

/** Per attempt; an action of ten thousand inputs does not need ten thousand spans. */
const storeSpansMax = 50;

export type WorkerTracesPorts = { readonly clock: Clock; readonly worker: string; readonly traceOf: TraceOf };

export class WorkerTraces implements AttemptWatch {
  readonly #tracer: Tracer;
  readonly #clock: Clock;
  readonly #worker: string;
  readonly #next: AttemptWatch;
  readonly #traceOf: TraceOf;

  /** `next` follows all attempts, traced or not. */
  constructor(tracer: Tracer, { clock, worker, traceOf }: WorkerTracesPorts, next: AttemptWatch) {
    this.#traceOf = traceOf;
    this.#tracer = tracer;
    this.#clock = clock;
    this.#worker = worker;
    this.#next = next;
  }

  begin(task: Granted, blobs: BlobStore): WatchedAttempt {
    const watched = this.#next.begin(task, blobs);
    const trace = parseTraceparent(this.#traceOf(task));
    if (!trace?.sampled) return watched;
    // Calls to the store are children of the worker's span, which is recorded at its end.
    const own: TraceContext = { ...trace, spanId: newSpanId() };
    const store = new StoreSpans(this.#tracer, this.#clock, own);
    return {
      blobs: store.traced(watched.blobs),
      ended: (moments) => {
        watched.ended(moments);
        this.#recordSpans(trace, own, task, moments, store.left);
      },
    };
  }

  #recordSpans(trace: TraceContext, own: TraceContext, task: Granted, at: Moments, left: number): void {
    const { workerStart: startMs = 0, workerCompleted: endMs = startMs } = at;
    const attributes = {
      "millrace.task": task.taskId,
      "millrace.attempt": task.attempt,
      "millrace.worker": this.#worker,
      "millrace.store.unrecorded": left > 0 ? left : undefined,
    };
    const error = at.executionCompleted === undefined ? "it did not finish" : undefined;
    const about = { name: "worker attempt", kind: "internal", startMs, endMs, attributes, error } as const;
    this.#tracer.record(trace, about, own.spanId);
    const phase = (name: string, from: keyof Moments, to: keyof Moments): void => {
      const [began, ended] = [at[from], at[to]];
      if (began === undefined || ended === undefined) return;
      const part = { name: `worker ${name}`, kind: "internal", startMs: began, endMs: ended, attributes: {} } as const;
      this.#tracer.record(own, { ...part, error: undefined });
    };
    phase("fetch inputs", "inputFetchStart", "inputFetchCompleted");
    phase("run command", "executionStart", "executionCompleted");
    phase("upload outputs", "outputUploadStart", "outputUploadCompleted");
  }
}

class StoreSpans {
  readonly #tracer: Tracer;
  readonly #clock: Clock;
  readonly #parent: TraceContext;
  #room = storeSpansMax;
  /** Calls that were not recorded. */
  left = 0;

  constructor(tracer: Tracer, clock: Clock, parent: TraceContext) {
    this.#tracer = tracer;
    this.#clock = clock;
    this.#parent = parent;
  }

  /** `prompt` and `file` go unrecorded: they take no time worth a span. */
  traced(inner: BlobStore): BlobStore {
    return observed(inner, {
      begin: ({ name, count, digest }) => {
        const end = this.#begin(name, digest === undefined ? { count } : { digest });
        return { ended: (outcome, bytes) => end(errorOf(outcome), name === "read" ? { bytes } : {}) };
      },
    });
  }

  #begin(call: string, facts: Facts): (error: string | undefined, more?: Facts) => void {
    if (this.#room === 0) {
      this.left += 1;
      return () => {};
    }
    this.#room -= 1;
    const [startMs, startMono] = [this.#clock.wallMs(), this.#clock.monotonicMs()];
    return (error, more = {}) => {
      const endMs = startMs + this.#clock.monotonicMs() - startMono;
      const named = Object.entries({ ...facts, ...more }).map(([name, value]) => [`millrace.store.${name}`, value]);
      const attributes = Object.fromEntries(named) as Record<string, string | number>;
      this.#tracer.record(this.#parent, { name: `store ${call}`, kind: "client", startMs, endMs, attributes, error });
    };
  }
}

function errorOf(outcome: string): string | undefined {
  if (outcome === "ok") return undefined;
  if (outcome === "left") return "it was not read to its end";
  return outcome === "bug" ? "internal" : outcome;
}

type Facts = Readonly<Record<string, string | number>>;
