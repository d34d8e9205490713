/**
 * The transport over gRPC: the second implementation of the port, for node to node and for workers in any language.
 * Addresses are those of the port that serves all protocols: `grpc:host:port`.
 */
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import { connectH2 } from "#h2/client.ts";
import { GrpcClient, type CallOptions } from "#grpc/client.ts";
import { wasNotBegun } from "#grpc/client-call.ts";
import type { Metadata } from "#grpc/metadata.ts";
import { grpcCode, GrpcError } from "#grpc/status.ts";
import { Work } from "#wire/generated/millrace/work/v1/work.ts";
import { directField } from "./grpc-serve.ts";
import type { ShardResponse, ShardService, WatchMessage, WatchRequest } from "./protocol.ts";
import type { Address, Listening, Transport } from "./transport.ts";
import { callOf } from "#shard/work/calls.ts";
import { readMap, type PartitionMap } from "#shard/work/map.ts";
import { responseOfStatus } from "#shard/work/rejections.ts";
import { readWatched, writeWatch } from "#shard/work/watch.ts";

export type GrpcTransportOptions = {
  readonly clock: Clock;
  /** "owner": talk to the shard's owner. "router": talk to any node, which asks the owner. */
  readonly via?: "owner" | "router";
  /** Sent with every call, such as a bearer token. */
  readonly metadata?: Metadata;
  /** Serves the service passed to `listen`; a client has none. */
  readonly listen?: (service: ShardService) => Promise<Listening>;
  readonly connectMs?: number;
};

export type GrpcTransport = Transport & {
  map(to: Address, signal: AbortSignal): Promise<PartitionMap>;
};

export function createGrpcTransport(options: GrpcTransportOptions): GrpcTransport {
  const { clock, via = "owner", metadata = [], connectMs = 5_000 } = options;
  const direct: Metadata = via === "owner" ? [[directField, "1"]] : [];
  const clients = new Map<Address, GrpcClient>();
  const listening = new Set<Listening>();
  let closed = false;

  function clientTo(address: Address): GrpcClient {
    if (closed) throw new Fault("unavailable", "use transport", { why: "it is closed" });
    let client = clients.get(address);
    if (!client) {
      const { host, port } = parseGrpcAddress(address);
      const authority = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
      const connect = () => connectH2({ host, port, clock, connectMs });
      client = new GrpcClient({ clock, authority, connect, metadata: [...direct, ...metadata] });
      clients.set(address, client);
    }
    return client;
  }

  return {
    async request(to, request, signal) {
      const call = callOf(request);
      const message = await said(to, signal, () =>
        clientTo(to).unary(call.method, call.writeRequest(request), { signal }),
      ).catch((error: unknown) => notSaid(to, error));
      return message.ok ? call.readResponse(request, message.value) : message.response;
    },
    watch: (to, request, signal) => follow(clientTo, to, request, signal),
    async map(to, signal) {
      const got = await said(to, signal, () => clientTo(to).unary(Work.methods.getPartitionMap, {}, { signal }));
      return readMap(got.value);
    },
    async listen(service) {
      if (!options.listen) throw new Fault("invalid", "listen", { why: "no address was given" });
      const opened = await options.listen(service);
      listening.add(opened);
      return opened;
    },
    async close() {
      closed = true;
      for (const client of clients.values()) client.close();
      await Promise.all(Array.from(listening, (opened) => opened.close()));
    },
  };
}

type Message<T> = { readonly ok: true; readonly value: T };

async function said<T>(to: Address, signal: AbortSignal, call: () => Promise<T>): Promise<Message<T>> {
  try {
    return { ok: true, value: await call() };
  } catch (error) {
    throw translated(to, signal, error);
  }
}

/** A rejection is an answer; every other failure is a Fault. */
function notSaid(to: Address, error: unknown): { readonly ok: false; readonly response: ShardResponse } {
  if (!(error instanceof GrpcError)) throw error;
  return { ok: false, response: responseOf(to, error) };
}

function responseOf(to: Address, error: GrpcError): ShardResponse {
  try {
    return responseOfStatus(error);
  } catch (fault) {
    throw isFault(fault) ? new Fault(fault.code, fault.doing, { ...fault.facts, from: to }) : fault;
  }
}

/**
 * "unavailable" is used only if the request was surely not delivered (see transport.ts). A GrpcError that contains an
 * answer is passed on unchanged.
 */
function translated(to: Address, signal: AbortSignal, error: unknown): unknown {
  if (signal.aborted) return signal.reason;
  if (!(error instanceof GrpcError) || error.details.length > 0) return error;
  if (wasNotBegun(error)) return new Fault("unavailable", "call", { to, why: error.message }, error);
  const isLost =
    error.code === grpcCode.unavailable || error.code === grpcCode.unknown || error.code === grpcCode.cancelled;
  return isLost ? new Fault("unknown-outcome", "call", { to, why: error.message }, error) : error;
}

async function* follow(
  clientTo: (address: Address) => GrpcClient,
  to: Address,
  request: WatchRequest,
  signal: AbortSignal,
): AsyncGenerator<WatchMessage> {
  const options: CallOptions = { signal };
  try {
    for await (const message of clientTo(to).serverStream(Work.methods.watch, writeWatch(request), options))
      yield readWatched(message);
  } catch (error) {
    const said = translated(to, signal, error);
    if (!(said instanceof GrpcError)) throw said;
    const response = responseOf(to, said);
    if (response.kind === "rejected") yield response;
    else if (response.kind === "not-owner") yield { kind: "moved", hint: response.hint };
    else throw new Fault("unavailable", "watch", { to, why: said.message });
  }
}

export function parseGrpcAddress(address: Address): { readonly host: string; readonly port: number } {
  const match = /^grpc:(\[[0-9a-fA-F:.]+\]|[^:\s]+):(\d{1,5})$/.exec(address);
  const port = Number(match?.[2]);
  if (!match || port > 65_535) throw new Fault("invalid", "read address", { address, why: "write grpc:host:port" });
  return { host: (match[1] ?? "").replace(/^\[|\]$/g, ""), port };
}
