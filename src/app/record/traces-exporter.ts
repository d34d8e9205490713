/**
 * Sends spans to a collector in batches. Traces are best effort: nothing waits for them; spans beyond the queue, or
 * that cannot be sent after a few attempts, are dropped and counted.
 */
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import { exportRequest, type Span } from "./traces-otlp.ts";

export type ExporterOptions = {
  readonly clock: Clock;
  /** The complete URL of the collector. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly resource: Span["attributes"];
  readonly version: string;
  /** Spans that may wait. */
  readonly queueMax: number;
  readonly send?: typeof fetch;
  readonly log: (line: string) => void;
};

export type ExporterFigures = { readonly sent: number; readonly dropped: number; readonly waiting: number };

const batchMax = 512;
const everyMs = 1_000;
const tries = 3;
const pauseMs = 1_000;
const answerMs = 10_000;
const closeMs = 5_000;

export class TraceExporter {
  readonly #options: ExporterOptions;
  readonly #closing = new AbortController();
  #queue: Span[] = [];
  #sent = 0;
  #dropped = 0;
  #sending: Promise<void> | undefined;
  #cancelTimer: (() => void) | undefined;

  constructor(options: ExporterOptions) {
    this.#options = options;
  }

  get figures(): ExporterFigures {
    return { sent: this.#sent, dropped: this.#dropped, waiting: this.#queue.length };
  }

  add(span: Span): void {
    if (this.#closing.signal.aborted || this.#queue.length >= this.#options.queueMax) {
      this.#dropped += 1;
      return;
    }
    this.#queue.push(span);
    if (this.#queue.length >= batchMax) return void this.#flush();
    this.#cancelTimer ??= this.#options.clock.after(everyMs, () => void this.#flush());
  }

  /** Sends the waiting spans, for a limited time. */
  async close(): Promise<void> {
    const cancel = this.#options.clock.after(closeMs, () => this.#closing.abort());
    await this.#flush();
    cancel();
    this.#closing.abort();
  }

  #flush(): Promise<void> {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    return (this.#sending ??= this.#sendAll().finally(() => (this.#sending = undefined)));
  }

  async #sendAll(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#queue.slice(0, batchMax);
      const isSent = await this.#sendOne(batch);
      this.#queue = this.#queue.slice(batch.length);
      if (isSent) this.#sent += batch.length;
      else this.#dropped += batch.length;
    }
  }

  async #sendOne(spans: readonly Span[]): Promise<boolean> {
    const { clock, resource, version, log } = this.#options;
    const body = JSON.stringify(exportRequest(spans, resource, version));
    for (let attempt = 1; ; attempt += 1) {
      try {
        const status = await this.#post(body);
        if (status < 300) return true;
        const isWorth = status === 429 || status === 502 || status === 503 || status === 504;
        if (!isWorth) throw new Fault("invalid", "send traces", { status });
        if (attempt >= tries) throw new Fault("unavailable", "send traces", { status });
      } catch (error) {
        const isFinal = error instanceof Fault || attempt >= tries || this.#closing.signal.aborted;
        if (isFinal) log(`traces: ${spans.length} spans were dropped: ${whyOf(error)}`);
        if (isFinal) return false;
      }
      await clock.sleep(pauseMs * attempt, this.#closing.signal).catch(() => {});
    }
  }

  async #post(body: string): Promise<number> {
    const { clock, url, headers, send = fetch } = this.#options;
    const late = new AbortController();
    const cancel = clock.after(answerMs, () => late.abort());
    try {
      const signal = AbortSignal.any([late.signal, this.#closing.signal]);
      const sent = { method: "POST", headers: { "content-type": "application/json", ...headers }, body, signal };
      const response = await send(url, sent);
      await response.body?.cancel();
      return response.status;
    } finally {
      cancel();
    }
  }
}

const whyOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
