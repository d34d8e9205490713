/** What a worker does for a traced action, and what it asks of the store meanwhile, as parts of the trace. */
import type { Digest } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import type { Clock } from "#base/clock.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { Granted } from "#shard/client/executor.ts";
import type { AttemptWatch, Moments, WatchedAttempt } from "#worker/attempt-watch.ts";
import type { TraceOf, Tracer } from "./traces.ts";
import { newSpanId, parseTraceparent, type TraceContext } from "./traces-context.ts";

/** Of one attempt; an action of ten thousand inputs needs no ten thousand spans. */
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
    // What the store does is part of what the worker does, which is told when it is over.
    const own: TraceContext = { ...trace, spanId: newSpanId() };
    const store = new StoreSpans(this.#tracer, this.#clock, own);
    return {
      blobs: store.traced(watched.blobs),
      ended: (moments) => {
        watched.ended(moments);
        this.#told(trace, own, task, moments, store.left);
      },
    };
  }

  #told(trace: TraceContext, own: TraceContext, task: Granted, at: Moments, left: number): void {
    const { workerStart: startMs = 0, workerCompleted: endMs = startMs } = at;
    const attributes = {
      "millrace.task": task.taskId,
      "millrace.attempt": task.attempt,
      "millrace.worker": this.#worker,
      "millrace.store.unrecorded": left > 0 ? left : undefined,
    };
    const error = at.executionCompleted === undefined ? "it did not come to its end" : undefined;
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
  /** Calls that were made and not recorded. */
  left = 0;

  constructor(tracer: Tracer, clock: Clock, parent: TraceContext) {
    this.#tracer = tracer;
    this.#clock = clock;
    this.#parent = parent;
  }

  /** `prompt` and `file` go unrecorded: they take no time worth a span. */
  traced(inner: BlobStore): BlobStore {
    const during = this.#during.bind(this);
    return {
      ...(inner.file && { file: (digest: Digest) => inner.file?.(digest) ?? Promise.resolve(undefined) }),
      ...(inner.prompt && { prompt: inner.prompt }),
      missing: (digests) => during("missing", { count: digests.length }, () => inner.missing(digests)),
      pin: (digests, forMs) => during("pin", { count: digests.length }, () => inner.pin(digests, forMs)),
      write: (digest, bytes, form) => during("write", { digest }, () => inner.write(digest, bytes, form)),
      read: (digest, range, form) => this.#read(inner.read(digest, range, form), digest),
    };
  }

  async *#read(parts: AsyncIterable<Uint8Array>, digest: Digest): AsyncGenerator<Uint8Array> {
    const end = this.#begin("read", { digest });
    let [bytes, error] = [0, "it was not read to its end" as string | undefined];
    try {
      for await (const part of parts) {
        bytes += part.length;
        yield part;
      }
      error = undefined;
    } catch (thrown) {
      error = isFault(thrown) ? thrown.code : "internal";
      throw thrown;
    } finally {
      end(error, { bytes });
    }
  }

  async #during<T>(call: string, facts: Facts, work: () => Promise<T>): Promise<T> {
    const end = this.#begin(call, facts);
    try {
      const answer = await work();
      end(undefined);
      return answer;
    } catch (error) {
      end(isFault(error) ? error.code : "internal");
      throw error;
    }
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

type Facts = Readonly<Record<string, string | number>>;
