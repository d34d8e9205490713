/**
 * How nodes and tools reach a node: the work protocol over gRPC, on TCP and Unix sockets of the node's own (ADR 0047).
 * Who gets through has the cluster's secret or may open the socket file, and is asked for nothing more; the published
 * port (`edge`) speaks the same protocol to callers who are not trusted.
 *
 * Beside the owner's protocol a node may serve the same through its router (`via: "router"`), for callers that know one
 * node only, and calls by name.
 */
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import { GrpcClient } from "#grpc/client.ts";
import type { Metadata } from "#grpc/metadata.ts";
import { GrpcServer } from "#grpc/server.ts";
import type { H2Limits } from "#h2/connection/limits.ts";
import { askShard, watchShard, type PeerCall } from "./grpc-calls.ts";
import { directField, serveWork } from "./grpc-serve.ts";
import { callByName, serveCalls, type NamedCalls } from "./named-calls.ts";
import type { ShardService } from "./protocol.ts";
import { parseAddress } from "./tcp-address.ts";
import { dial } from "./tcp-dial.ts";
import { listenOn } from "./tcp-listen.ts";
import type { Address, Listening, Transport } from "./transport.ts";

export type TcpLimits = {
  readonly messageBytesMax: number;
  /** A peer that says nothing for so long is asked whether it is there, and has as long to answer. */
  readonly pingMs: number;
  /** From the start of a connection to the peer's greeting. */
  readonly connectMs: number;
  /** Connections that have asked something. Beyond them, one without a call is closed for a new one. */
  readonly connectionsMax: number;
  /** Connections before that: beyond them, the one that has waited longest is closed. */
  readonly greetingMax: number;
  /** Calls and watches at once, each connection; those of a client beyond it wait. */
  readonly servedMax: number;
};

export const tcpLimitsDefault: TcpLimits = {
  messageBytesMax: 16 * 1024 * 1024,
  pingMs: 10_000,
  connectMs: 5_000,
  connectionsMax: 1_000,
  greetingMax: 256,
  servedMax: 10_000,
};

export type TcpOptions = {
  readonly clock: Clock;
  readonly listenOn?: readonly Address[];
  /** "owner": talk to the shard's owner. "router": talk to any node, which asks the owner. */
  readonly via?: "owner" | "router";
  readonly limits?: Partial<TcpLimits>;
  /** The secret that all nodes share: without it TCP is used on this machine only, unencrypted. */
  readonly secret?: string | undefined;
  /** The address given to others instead of the first one listened on. */
  readonly advertise?: Address | undefined;
};

/** What a node serves besides its own shards. */
export type Extras = { readonly routed?: ShardService; readonly calls?: NamedCalls };

export type TcpTransport = Transport & {
  listen(service: ShardService, extras?: Extras): Promise<Listening>;
  /** Calls a method that a node offers by name. */
  call(to: Address, method: string, body: unknown, signal: AbortSignal): Promise<unknown>;
};

export function createTcpTransport(options: TcpOptions): TcpTransport {
  const { clock, listenOn: addresses = [], via = "owner", secret, advertise } = options;
  const limits = { ...tcpLimitsDefault, ...options.limits };
  const h2Limits = h2LimitsOf(limits);
  const metadata: Metadata = via === "owner" ? [[directField, "1"]] : [];
  const clients = new Map<Address, GrpcClient>();
  const listening = new Set<Listening>();
  let closed = false;

  function peerOf(to: Address, signal: AbortSignal): PeerCall {
    if (closed) throw new Fault("unavailable", "use transport", { why: "it is closed" });
    signal.throwIfAborted();
    let client = clients.get(to);
    if (!client) {
      parseAddress(to);
      const { messageBytesMax } = limits;
      const connect = () => dial(to, { clock, limits: h2Limits, secret });
      client = new GrpcClient({ clock, authority: "node", connect, metadata, messageBytesMax });
      clients.set(to, client);
    }
    return { client, to, signal };
  }

  return {
    request: async (to, request, signal) => await askShard(peerOf(to, signal), request),
    async *watch(to, request, signal) {
      yield* watchShard(peerOf(to, signal), request);
    },
    call: async (to, method, body, signal) => await callByName(peerOf(to, signal), method, body),
    async listen(service: ShardService, extras: Extras = {}) {
      const grpc = grpcServer(service, extras, { clock, limits });
      const [first, ...others] = addresses;
      if (first === undefined) throw new Fault("invalid", "listen", { why: "no address was given" });
      const opened: Listening[] = [];
      try {
        for (const address of [first, ...others])
          opened.push(await listenOn(parseAddress(address), grpc, { clock, limits, h2Limits, secret }));
      } catch (error) {
        for (const each of opened) await each.close();
        throw error;
      }
      const all: Listening = {
        address: advertise ?? opened[0]?.address ?? first,
        async close() {
          listening.delete(all);
          await Promise.all(opened.map((each) => each.close()));
        },
      };
      listening.add(all);
      return all;
    },
    async close() {
      closed = true;
      for (const client of clients.values()) client.close();
      await Promise.all([...listening].map((each) => each.close()));
    },
  };
}

/** Those who get here are trusted: nothing is asked of them but to speak the protocol. */
function grpcServer(
  service: ShardService,
  { routed = notRouted, calls = {} }: Extras,
  { clock, limits }: { readonly clock: Clock; readonly limits: TcpLimits },
): GrpcServer<undefined> {
  const { messageBytesMax } = limits;
  const grpc = new GrpcServer<undefined>({ clock, messageBytesMax, admit: () => undefined });
  serveWork(grpc, { service, routed, map: () => Promise.reject(noRouter()) });
  serveCalls(grpc, calls);
  return grpc;
}

const noRouter = (): Fault => new Fault("not-found", "serve call", { why: "this node routes nothing" });

const notRouted: ShardService = {
  request: () => Promise.reject(noRouter()),
  watch: () => {
    throw noRouter();
  },
};

/** Nodes hold many questions open at each other and take them back often: a worker whose slots fill, above all. */
const h2LimitsOf = ({ pingMs, connectMs, servedMax }: TcpLimits): Partial<H2Limits> => ({
  streamsMax: servedMax,
  streamsWaitingMax: servedMax,
  peerResets: { burst: 100_000, perSecond: 20_000 },
  windowUpdates: { burst: 100_000, perSecond: 20_000 },
  keepaliveMs: pingMs,
  keepaliveAckMs: pingMs,
  prefaceMs: connectMs,
});
