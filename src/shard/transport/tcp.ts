/**
 * The transport over TCP and Unix sockets. Besides the owner's protocol (`request`, `watch`) a node may serve the same
 * messages through its router (`ask`, `follow`), for callers that know only one node, and calls of its own.
 */
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import { frameBytesMaxDefault } from "./frames.ts";
import type { ShardRequest, ShardResponse, ShardService, WatchMessage, WatchRequest } from "./protocol.ts";
import { parseAddress } from "./tcp-address.ts";
import { TcpLink, type ClientLimits } from "./tcp-client.ts";
import { listenOn, type Handlers, type ServerLimits } from "./tcp-server.ts";
import type { Address, Listening, Transport } from "./transport.ts";

export type TcpLimits = ClientLimits & ServerLimits;

export const tcpLimitsDefault: TcpLimits = {
  frameBytesMax: frameBytesMaxDefault,
  bufferedBytesMax: 64 * 1024 * 1024,
  pingMs: 10_000,
  connectMs: 5_000,
  connectionsMax: 1_000,
  greetingMax: 256,
  inFlightMax: 10_000,
  servedMax: 10_000,
  streamCredit: 64,
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
export type Extras = {
  readonly routed?: ShardService;
  readonly calls?: Handlers["call"];
};

export type TcpTransport = Transport & {
  listen(service: ShardService, extras?: Extras): Promise<Listening>;
  /** Calls a method that a node offers by name. */
  call(to: Address, method: string, body: unknown, signal: AbortSignal): Promise<unknown>;
};

export function createTcpTransport({
  clock,
  listenOn: addresses = [],
  via = "owner",
  limits,
  secret,
  advertise,
}: TcpOptions): TcpTransport {
  const allLimits = { ...tcpLimitsDefault, ...limits };
  const links = new Map<Address, TcpLink>();
  const listening = new Set<Listening>();
  const methods = via === "owner" ? { request: "request", watch: "watch" } : { request: "ask", watch: "follow" };
  let closed = false;

  function linkTo(address: Address): TcpLink {
    if (closed) throw new Fault("unavailable", "use transport", { why: "it is closed" });
    const link = links.get(address) ?? new TcpLink(address, clock, allLimits, secret);
    links.set(address, link);
    return link;
  }

  return {
    request: async (to, request, signal) => (await linkTo(to).call(methods.request, request, signal)) as ShardResponse,
    watch: (to, request, signal) => linkTo(to).stream(methods.watch, request, signal) as AsyncIterable<WatchMessage>,
    call: async (to, method, body, signal) => await linkTo(to).call(`call:${method}`, body, signal),
    async listen(service: ShardService, extras: Extras = {}) {
      const handlers = handlersFor(service, extras);
      const [first, ...others] = addresses;
      if (first === undefined) throw new Fault("invalid", "listen", { why: "no address was given" });
      const opened: Listening[] = [];
      try {
        for (const address of [first, ...others])
          opened.push(await listenOn(parseAddress(address), handlers, { clock, limits: allLimits, secret }));
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
      for (const link of links.values()) link.close(new Fault("unavailable", "use transport", { why: "closed" }));
      await Promise.all([...listening].map((each) => each.close()));
    },
  };
}

function handlersFor(service: ShardService, { routed, calls = {} }: Extras): Handlers {
  return {
    call: {
      request: (body, signal) => service.request(body as ShardRequest, signal),
      ...(routed && { ask: (body, signal) => routed.request(body as ShardRequest, signal) }),
      ...Object.fromEntries(Object.entries(calls).map(([name, call]) => [`call:${name}`, call])),
    },
    stream: {
      watch: (body, signal) => service.watch(body as WatchRequest, signal),
      ...(routed && { follow: (body, signal) => routed.watch(body as WatchRequest, signal) }),
    },
  };
}
