/**
 * One port for all protocols: gRPC and HTTP/2, HTTP/1.1, and what HTTP/1.1 is upgraded to. Without TLS the first bytes
 * tell which it is; with TLS the handshake does.
 */
import type { IncomingMessage, Server as HttpServer, ServerResponse } from "node:http";
import { createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type TlsOptions, type TLSSocket } from "node:tls";
import { assert } from "#base/assert.ts";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import type { HeaderList } from "#h2/hpack/header-list.ts";
import type { H2Limits } from "#h2/connection/limits.ts";
import { listening } from "#h2/server.ts";
import { H2Socket } from "#h2/socket.ts";
import { listenOnUnixSocket } from "#h2/unix-socket.ts";
import type { Stream, StreamHandler } from "#h2/connection/stream.ts";
import type { CloseReason, ConnectionSlot, ConnectionSlots } from "./connection-slots.ts";
import { sniff } from "./sniff.ts";

/** What is known of a connection, for authentication. */
export type Peer = {
  readonly address: string;
  /** Both ends of the connection; undefined if it is gone already. */
  readonly ends?: ConnectionEnds | undefined;
  /** TLS: the client may have shown a certificate. */
  readonly tls: TLSSocket | undefined;
  /** Is told who is accepted on the connection. */
  readonly slot?: ConnectionSlot | undefined;
};

export type ConnectionEnds = {
  readonly localAddress: string;
  readonly localPort: number;
  readonly remoteAddress: string;
  readonly remotePort: number;
};

function endsOf({ localAddress, localPort, remoteAddress, remotePort }: Socket): ConnectionEnds | undefined {
  if (localAddress === undefined || localPort === undefined) return undefined;
  if (remoteAddress === undefined || remotePort === undefined) return undefined;
  return { localAddress, localPort, remoteAddress, remotePort };
}

/** A TCP port, or a Unix socket that only the node's user may connect to. */
export type ListenAddress = { readonly host: string; readonly port: number } | { readonly socket: string };

export type PortOptions = {
  readonly address: ListenAddress;
  readonly clock: Clock;
  /** Certificate and key; without them the port does not use TLS. */
  readonly tls?: TlsOptions;
  readonly onRequest: (stream: Stream, headers: HeaderList, ended: boolean, peer: Peer) => StreamHandler;
  /** Does not listen by itself: connections are handed to it. */
  readonly http1: HttpServer;
  readonly h2?: Partial<H2Limits>;
  /** HTTP/2: CONNECT may have a :protocol (RFC 8441). */
  readonly takesProtocols: boolean;
  /** Limits on connections; shared by all ports of a node. */
  readonly slots: ConnectionSlots;
  readonly accepted?: (protocol: "h2" | "http/1.1") => void;
  readonly report?: (doing: string, error: unknown) => void;
};

export type Port = {
  /** 0 for a Unix socket. */
  readonly port: number;
  /** For new handshakes. */
  setSecureContext(options: TlsOptions): void;
  /** Accepts no more connections, lets running calls end, then stops. */
  close(): Promise<void>;
};

const politely = "the connection made no call, or there are too many; connect again when you have one";

/**
 * The system refuses connections when there are this many above the limit: sockets that are being closed still count
 * there.
 */
const closingMax = 1_000;

export async function openPort(options: PortOptions): Promise<Port> {
  const { address, clock, http1, tls, slots, report } = options;
  const held = new Set<HeldConnection>();
  /** TLS: handshakes in progress, by the client's address and port. */
  const shaking = new Map<string, HeldConnection>();

  function hold(socket: Socket): HeldConnection {
    const mine = new HeldConnection(socket, slots, "socket" in address);
    held.add(mine);
    socket.once("close", () => drop(mine));
    return mine;
  }

  function drop(mine: HeldConnection): void {
    held.delete(mine);
    mine.slot.free();
  }

  function adoptHttp1(mine: HeldConnection): void {
    options.accepted?.("http/1.1");
    const { socket } = mine;
    peers.set(socket, mine.peer(tls !== undefined));
    http1.emit("connection", socket);
    socket.resume(); // it was paused while its first bytes were read
  }

  function adoptH2(mine: HeldConnection, firstBytes?: Buffer): void {
    options.accepted?.("h2");
    const peer = mine.peer(tls !== undefined);
    mine.h2 = new H2Socket(mine.socket, {
      role: "server",
      clock,
      handler: {
        onRequest: (stream, headers, ended) => {
          mine.called();
          return options.onRequest(stream, headers, ended, peer);
        },
        onHandlerFailed: (error) => report?.("handle a request", error),
      },
      takesProtocols: options.takesProtocols,
      ...(options.h2 && { limits: options.h2 }),
      ...(firstBytes && { firstBytes }),
    });
  }

  function adopt(mine: HeldConnection): void {
    const { socket } = mine;
    // The socket's later owner listens too; until then a reset must not crash the process.
    socket.on("error", () => {});
    if (tls && (socket as TLSSocket).alpnProtocol === "h2") return adoptH2(mine);
    if (tls && (socket as TLSSocket).alpnProtocol === "http/1.1") return adoptHttp1(mine);
    sniff(socket, (kind, firstBytes) => {
      if (kind === "h2") return adoptH2(mine, firstBytes);
      if (kind === "neither") return void socket.destroy();
      socket.unshift(firstBytes);
      adoptHttp1(mine);
    });
  }

  /** The TLS server has its own socket object for a connection that another server accepted. */
  function adoptSecure(socket: TLSSocket): void {
    const mine = shaking.get(endOf(socket));
    if (!mine || mine.slot.isFreed) return void socket.destroy();
    shaking.delete(endOf(socket));
    mine.socket = socket;
    socket.once("close", () => drop(mine));
    adopt(mine);
  }

  function shake(raw: Socket): void {
    const end = endOf(raw);
    const mine = hold(raw);
    shaking.set(end, mine);
    raw.once("close", () => void (shaking.get(end) === mine && shaking.delete(end)));
  }

  const server: Server = tls
    ? createTlsServer({ ALPNProtocols: ["h2", "http/1.1"], ...tls }, adoptSecure).prependListener("connection", shake)
    : createServer({ noDelay: true }, (socket) => adopt(hold(socket)));
  server.maxConnections = slots.limits.max + closingMax;
  return {
    port:
      "socket" in address
        ? await listeningLocally(server, address.socket)
        : await listening(server, address.host, address.port),
    setSecureContext: (next) => {
      if ("setSecureContext" in server) (server as ReturnType<typeof createTlsServer>).setSecureContext(next);
    },
    async close() {
      const stopped = new Promise<void>((done) => server.close(() => done()));
      http1.closeIdleConnections();
      await Promise.all([...held].flatMap(({ h2 }) => (h2 ? [h2.drain()] : [])));
      for (const { socket } of held) socket.destroy();
      await stopped;
    },
  };
}

async function listeningLocally(server: Server, socket: string): Promise<number> {
  try {
    await listenOnUnixSocket(server, socket);
    return 0;
  } catch (cause) {
    throw new Fault("unavailable", "listen", { socket, errno: (cause as NodeJS.ErrnoException).code }, cause);
  }
}

const endOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;

/** A connection and its slot. */
class HeldConnection {
  readonly slot: ConnectionSlot;
  readonly #address: string;
  readonly #ends: ConnectionEnds | undefined;
  /** Calls that came with the bytes that identified the protocol. */
  #firstCalls = 0;
  socket: Socket;
  h2: H2Socket | undefined;

  constructor(socket: Socket, slots: ConnectionSlots, isUnix: boolean) {
    this.socket = socket;
    this.#address = socket.remoteAddress ?? (isUnix ? "unix" : "");
    this.#ends = endsOf(socket);
    this.slot = slots.take(this.#address, this);
  }

  peer(isTls: boolean): Peer {
    const tls = isTls ? (this.socket as TLSSocket) : undefined;
    return { address: this.#address, ends: this.#ends, tls, slot: this.slot };
  }

  /** An HTTP/2 request has come. */
  called(): void {
    if (!this.h2) this.#firstCalls += 1;
    this.slot.called();
  }

  calls(): number {
    return this.h2 ? this.h2.connection.streamCount : this.#firstCalls + http1CallsOn(this.socket);
  }

  close(how: "now" | "politely", _reason: CloseReason): void {
    if (how === "politely" && this.h2) this.h2.close(undefined, politely);
    else this.socket.destroy();
  }
}

const peers = new WeakMap<Socket, Peer>();
const http1Calls = new WeakMap<Socket, number>();

/** What is known of the connection of an HTTP/1.1 request. */
export function peerOf(socket: Socket): Peer {
  const known = peers.get(socket);
  assert(known !== undefined, "requests come from connections that the port took in");
  return known;
}

/** How many HTTP/1.1 requests of a connection are being answered. */
export const http1CallsOn = (socket: Socket): number => http1Calls.get(socket) ?? 0;

/** A connection asks to become a WebSocket: it counts as one call for as long as it is open. */
export function countUpgrade({ socket }: IncomingMessage): void {
  http1Calls.set(socket, http1CallsOn(socket) + 1);
  peers.get(socket)?.slot?.called();
}

/** An HTTP/1.1 request has come, with all its headers. */
export function countHttp1Call({ socket }: IncomingMessage, response: ServerResponse): void {
  http1Calls.set(socket, http1CallsOn(socket) + 1);
  peers.get(socket)?.slot?.called();
  response.once("close", () => http1Calls.set(socket, http1CallsOn(socket) - 1));
}
