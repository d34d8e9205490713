/**
 * How nodes reach each other. A transport carries requests and streams of messages; it retries nothing and knows no
 * shards. Failures are Faults: "unavailable" = surely not delivered, "unknown-outcome" = it may have been.
 */
import type { ShardRequest, ShardResponse, ShardService, WatchMessage, WatchRequest } from "./protocol.ts";

export type Address = string;

export type Transport = {
  request(to: Address, request: ShardRequest, signal: AbortSignal): Promise<ShardResponse>;
  watch(to: Address, request: WatchRequest, signal: AbortSignal): AsyncIterable<WatchMessage>;
  /** Serves until closed; returns the address that others can reach. */
  listen(service: ShardService): Promise<Listening>;
  close(): Promise<void>;
};

export type Listening = { readonly address: Address; close(): Promise<void> };
