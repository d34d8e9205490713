/** Traces of actions through edge, shard, worker and store: what is recorded, and where each span begins. */
import type { Clock } from "#base/clock.ts";
import type { Random } from "#base/random.ts";
import type { MetricsRegistry } from "#edge/metrics/registry.ts";
import { readSmallFile } from "#edge/tls/small-file.ts";
import { formatTraceparent, newSpanId, newTraceId, parseTraceparent } from "./traces-context.ts";
import type { TraceContext } from "./traces-context.ts";
import { TraceExporter } from "./traces-exporter.ts";
import type { Span } from "./traces-otlp.ts";
import type { TracesConfig } from "#app/config/traces-config.ts";
import { version } from "#app/version.ts";

export type TracerOptions = {
  readonly clock: Clock;
  readonly random: Random;
  readonly share: number;
  readonly exporter: Pick<TraceExporter, "add">;
};

/** A span that has not ended. */
export type OpenSpan = {
  /** For the next hop. */
  readonly traceparent: string;
  end(error?: string, more?: Span["attributes"]): void;
};

export type NewSpan = Pick<Span, "name" | "kind" | "attributes">;

type Happened = NewSpan & Pick<Span, "startMs" | "endMs" | "error">;

export class Tracer {
  readonly #options: TracerOptions;

  constructor(options: TracerOptions) {
    this.#options = options;
  }

  /** A span of the caller's trace, or the first of a new one; undefined if it is not recorded. */
  begin(traceparent: string | undefined, about: NewSpan): OpenSpan | undefined {
    const parent = parseTraceparent(traceparent);
    const { random, share, clock } = this.#options;
    if (parent ? !parent.sampled : random.fraction() >= share) return undefined;
    const context = { traceId: parent?.traceId ?? newTraceId(), spanId: newSpanId(), sampled: true };
    const [startMs, startMono] = [clock.wallMs(), clock.monotonicMs()];
    return {
      traceparent: formatTraceparent(context),
      end: (error, more = {}) => {
        const endMs = startMs + clock.monotonicMs() - startMono;
        const attributes = { ...about.attributes, ...more };
        this.#add(context, parent, { ...about, attributes, startMs, endMs, error });
      },
    };
  }

  /** Records something that has already happened as a span. */
  record(parent: TraceContext, about: Happened, spanId: string = newSpanId()): void {
    if (parent.sampled) this.#add({ ...parent, spanId }, parent, about);
  }

  #add(
    { traceId, spanId }: TraceContext,
    parent: TraceContext | undefined,
    about: Omit<Span, "traceId" | "spanId" | "parentId">,
  ): void {
    this.#options.exporter.add({ traceId, spanId, parentId: parent?.spanId, ...about });
  }
}

export type Traces = {
  readonly tracer: Tracer;
  show(registry: MetricsRegistry): void;
  close(): Promise<void>;
};

export type TracesPorts = {
  readonly name: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: (line: string) => void;
};

export async function openTraces(config: TracesConfig, { name, clock, random, log }: TracesPorts): Promise<Traces> {
  const { endpoint, share, token, service, queueMax } = config;
  const secret = token === undefined ? undefined : (await readSmallFile(token, "read the collector's token")).trim();
  const base = endpoint.replace(/\/+$/, "");
  const exporter = new TraceExporter({
    clock,
    url: base.endsWith("/v1/traces") ? base : `${base}/v1/traces`,
    headers: secret === undefined ? {} : { authorization: `Bearer ${secret}` },
    resource: { "service.name": service, "service.version": version, "service.instance.id": name },
    version,
    queueMax,
    log,
  });
  return {
    tracer: new Tracer({ clock, random: random.fork("traces"), share, exporter }),
    show: (registry) => showTraces(registry, exporter),
    close: () => exporter.close(),
  };
}

function showTraces(registry: MetricsRegistry, exporter: TraceExporter): void {
  const spans = registry.counter({
    name: "millrace_trace_spans_total",
    help: "Spans sent to the collector, and those that were dropped.",
    labels: ["outcome"],
    seriesMax: 2,
  });
  registry.beforeText(() => {
    spans.with("sent").value = exporter.figures.sent;
    spans.with("dropped").value = exporter.figures.dropped;
  });
}

/** The trace that a job, or a task of it, belongs to. */
export type TraceOf = (of: {
  readonly trace?: string | undefined;
  readonly door: string;
  readonly spec: string;
}) => string | undefined;
