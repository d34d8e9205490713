/**
 * A client of the published work protocol, as workers in any language are. Addresses are those of the port that serves
 * everything: `grpc:host:port`.
 */
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import { GrpcClient } from "#grpc/client.ts";
import type { Metadata } from "#grpc/metadata.ts";
import { connectH2 } from "#h2/client.ts";
import { ask, askShard, watchShard, type PeerCall } from "#shard/transport/grpc-calls.ts";
import { directField } from "#shard/transport/grpc-serve.ts";
import type { ShardService } from "#shard/transport/protocol.ts";
import type { Address, Listening, Transport } from "#shard/transport/transport.ts";
import { readMap, type PartitionMap } from "#shard/work/map.ts";
import { Work } from "#wire/generated/millrace/work/v1/work.ts";

export type GrpcTransportOptions = {
  readonly clock: Clock;
  /** "owner": speak to the shard's owner. "router": speak to any node, which asks the owner. */
  readonly via?: "owner" | "router";
  /** Sent with every call, such as a bearer token. */
  readonly metadata?: Metadata | (() => Metadata);
  /** Serves what `listen` is given; a client has none. */
  readonly listen?: (service: ShardService) => Promise<Listening>;
  readonly connectMs?: number;
  /** Left out: plain text. */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string };
};

export type GrpcTransport = Transport & {
  /** For other services of the same node, over the same connection. */
  client(to: Address): GrpcClient;
  map(to: Address, signal: AbortSignal): Promise<PartitionMap>;
};

export function createGrpcTransport(options: GrpcTransportOptions): GrpcTransport {
  const { clock, via = "owner", metadata = [], connectMs = 5_000, tls } = options;
  const direct: Metadata = via === "owner" ? [[directField, "1"]] : [];
  const withDirect = joined(direct, metadata);
  const clients = new Map<Address, GrpcClient>();
  const listening = new Set<Listening>();
  let closed = false;

  function clientTo(address: Address): GrpcClient {
    if (closed) throw new Fault("unavailable", "use transport", { why: "it is closed" });
    let client = clients.get(address);
    if (!client) {
      const { host, port } = parseGrpcAddress(address);
      const authority = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
      const secured = tls ? { tls: { servername: host, ...tls } } : {};
      const connect = () => connectH2({ host, port, clock, connectMs, ...secured });
      const scheme = tls ? "https" : "http";
      client = new GrpcClient({ clock, authority, scheme, connect, metadata: withDirect });
      clients.set(address, client);
    }
    return client;
  }

  const peerOf = (to: Address, signal: AbortSignal): PeerCall => ({ client: clientTo(to), to, signal });
  return {
    client: clientTo,
    request: async (to, request, signal) => await askShard(peerOf(to, signal), request),
    async *watch(to, request, signal) {
      yield* watchShard(peerOf(to, signal), request);
    },
    map: async (to, signal) => readMap(await ask(peerOf(to, signal), Work.methods.getPartitionMap, {})),
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

export function parseGrpcAddress(address: Address): { readonly host: string; readonly port: number } {
  const match = /^grpc:(\[[0-9a-fA-F:.]+\]|[^:\s]+):(\d{1,5})$/.exec(address);
  const port = Number(match?.[2]);
  if (!match || port > 65_535) throw new Fault("invalid", "read address", { address, why: "write grpc:host:port" });
  return { host: (match[1] ?? "").replace(/^\[|\]$/g, ""), port };
}

/** Both, as one value that stays the same until the second changes. */
function joined(first: Metadata, second: Metadata | (() => Metadata)): Metadata | (() => Metadata) {
  if (typeof second !== "function") return [...first, ...second];
  let last: readonly [from: Metadata, both: Metadata] | undefined;
  return () => {
    const from = second();
    if (last?.[0] !== from) last = [from, [...first, ...from]];
    return last[1];
  };
}
