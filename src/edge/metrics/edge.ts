/** The edge's metrics: one table, and handles that are bound before the first call. */
import type { Family, MetricsRegistry } from "./registry.ts";
import type { Counter, Histogram } from "./series.ts";
import { closeReasons, slotStates, type CloseReason, type SlotState } from "#edge/port/connection-slots.ts";
import { unauthenticatedReasons, type Refusal } from "#access/refusal.ts";

/** In seconds: from the time of a synchronous call to that of a long poll. */
const latencyBounds = [
  0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
] as const;

export const edgeMetricTable = {
  calls: {
    name: "millrace_edge_calls_total",
    help: "Calls that have ended, by method and status.",
    labels: ["method", "code"],
    seriesMax: 2_000,
  },
  seconds: {
    name: "millrace_edge_call_seconds",
    help: "How long calls took, from their first byte to the end of the answer.",
    labels: ["method"],
    seriesMax: 200,
    bounds: latencyBounds,
  },
  receivedBytes: {
    name: "millrace_edge_received_bytes_total",
    help: "Bytes of messages received, by method.",
    labels: ["method"],
    seriesMax: 200,
  },
  sentBytes: {
    name: "millrace_edge_sent_bytes_total",
    help: "Bytes of messages sent, by method.",
    labels: ["method"],
    seriesMax: 200,
  },
  connections: {
    name: "millrace_edge_connections_total",
    help: "Connections accepted, by protocol.",
    labels: ["protocol"],
    seriesMax: 20,
  },
  connectionsOpen: { name: "millrace_edge_connections_open", help: "Connections that are open." },
  connectionsByState: {
    name: "millrace_edge_connections_by_state",
    help:
      "Open connections: silent (no call yet), stranger (calls that need no credentials), anonymous, known " +
      "(by its credentials).",
    labels: ["state"],
    seriesMax: slotStates.length,
  },
  connectionsClosed: {
    name: "millrace_edge_connections_closed_total",
    help:
      "Connections that the node closed: no-call (none in time), idle (of a stranger), address-full and full (for a " +
      "newer one, from its address or from any), share (of whoever had the most).",
    labels: ["reason"],
    seriesMax: closeReasons.length,
  },
  certificateExpires: {
    name: "millrace_edge_certificate_expires_seconds",
    help: "When the certificate that is served expires, in seconds since 1970; 0 without TLS.",
  },
  refusals: {
    name: "millrace_edge_refusals_total",
    help: "Calls and connections turned away, by reason.",
    labels: ["reason"],
    seriesMax: 200,
  },
} as const;

/**
 * Metrics of one method, bound when it is registered. Calls to unknown methods share those of a method called `other`.
 */
export class MethodMetrics {
  readonly #calls: Family<Counter>;
  readonly #method: string;
  readonly #byCode = new Map<string, Counter>();
  readonly #seconds: Histogram;
  readonly received: Counter;
  readonly sent: Counter;

  constructor(
    method: string,
    families: { calls: Family<Counter>; seconds: Family<Histogram>; received: Family<Counter>; sent: Family<Counter> },
  ) {
    this.#method = method;
    this.#calls = families.calls;
    this.#seconds = families.seconds.with(method);
    this.received = families.received.with(method);
    this.sent = families.sent.with(method);
  }

  /** `code` is one of few: the name of a gRPC status, or an HTTP status. */
  ended(code: string, seconds: number): void {
    (this.#byCode.get(code) ?? this.#bind(code)).add();
    this.#seconds.observe(seconds);
  }

  #bind(code: string): Counter {
    const counter = this.#calls.with(this.#method, code);
    if (this.#byCode.size < codesMax) this.#byCode.set(code, counter);
    return counter;
  }
}

const codesMax = 100;

export type EdgeMetrics = {
  method(name: string): MethodMetrics;
  /** Counts connections of a protocol: h2, http/1.1, ... */
  connections(protocol: string): Counter;
  refused(reason: Refusal["reason"] | (string & {})): void;
  /** Counts a connection that the node closed. */
  closed(reason: CloseReason): void;
};

/** Values that are looked up when the metrics are read. */
export type EdgeGauges = {
  readonly connections: () => Readonly<Record<SlotState, number>>;
  readonly certificateExpiresAtMs: () => number;
};

export function edgeMetrics(registry: MetricsRegistry, gauges: EdgeGauges): EdgeMetrics {
  const table = edgeMetricTable;
  const families = {
    calls: registry.counter(table.calls),
    seconds: registry.histogram(table.seconds),
    received: registry.counter(table.receivedBytes),
    sent: registry.counter(table.sentBytes),
  };
  const connections = registry.counter(table.connections);
  const open = registry.gauge(table.connectionsOpen).with();
  const byState = registry.gauge(table.connectionsByState);
  const closedFamily = registry.counter(table.connectionsClosed);
  const closedBy = new Map(closeReasons.map((reason) => [reason, closedFamily.with(reason)]));
  const refusals = registry.counter(table.refusals);
  const expires = registry.gauge(table.certificateExpires).with();
  registry.beforeText(() => {
    const counted = gauges.connections();
    open.set(slotStates.reduce((sum, state) => sum + counted[state], 0));
    for (const state of slotStates) byState.with(state).set(counted[state]);
    expires.set(gauges.certificateExpiresAtMs() / 1_000);
  });
  const byReason = new Map<string, Counter>(
    [...Object.keys(unauthenticatedReasons), "role-missing", "tenant-foreign"].map((reason) => [
      reason,
      refusals.with(reason),
    ]),
  );
  return {
    method: (name) => new MethodMetrics(name, families),
    connections: (protocol) => connections.with(protocol),
    closed: (reason) => closedBy.get(reason)?.add(),
    refused: (reason) => (byReason.get(reason) ?? refusals.with(reason)).add(),
  };
}
