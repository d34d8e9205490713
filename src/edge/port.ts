/**
 * One port for everything: gRPC and HTTP/2, HTTP/1.1, and what HTTP/1.1 is upgraded to. In clear the first bytes tell
 * which it is; over TLS the handshake does.
 */
import type { Server as HttpServer } from "node:http";
import { createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type TlsOptions, type TLSSocket } from "node:tls";
import type { Clock } from "#base/clock.ts";
import type { HeaderList } from "#h2/header-list.ts";
import type { H2Limits } from "#h2/limits.ts";
import { listening } from "#h2/server.ts";
import { H2Socket } from "#h2/socket.ts";
import type { Stream, StreamHandler } from "#h2/stream.ts";
import { sniff } from "./sniff.ts";

/** What is known of a connection, for whoever asks who is calling. */
export type Peer = {
  readonly address: string;
  /** Both ends of the connection; undefined where it is gone already. */
  readonly ends?: ConnectionEnds | undefined;
  /** TLS: the client may have shown a certificate. */
  readonly tls: TLSSocket | undefined;
};

export type ConnectionEnds = {
  readonly localAddress: string;
  readonly localPort: number;
  readonly remoteAddress: string;
  readonly remotePort: number;
};

export function peerOf(socket: Socket, tls: TLSSocket | undefined): Peer {
  const { localAddress, localPort, remoteAddress, remotePort } = socket;
  const isThere = localAddress !== undefined && localPort !== undefined && remotePort !== undefined;
  const ends =
    isThere && remoteAddress !== undefined ? { localAddress, localPort, remoteAddress, remotePort } : undefined;
  return { address: remoteAddress ?? "", ends, tls };
}

export type PortOptions = {
  readonly host: string;
  readonly port: number;
  readonly clock: Clock;
  /** Certificate and key; without them the port speaks in clear. */
  readonly tls?: TlsOptions;
  readonly onRequest: (stream: Stream, headers: HeaderList, ended: boolean, peer: Peer) => StreamHandler;
  /** Does not listen by itself: connections are handed to it. */
  readonly http1: HttpServer;
  readonly h2?: Partial<H2Limits>;
  readonly connectionsMax?: number;
  /** How long a connection may take to say what it speaks. */
  readonly firstBytesMs?: number;
  readonly counted?: (change: 1 | -1) => void;
  readonly accepted?: (protocol: "h2" | "http/1.1") => void;
  readonly report?: (doing: string, error: unknown) => void;
};

export type Port = {
  readonly port: number;
  /** New handshakes are made with these. */
  setSecureContext(options: TlsOptions): void;
  /** Takes no more connections, lets what runs come to its end, then stops. */
  close(): Promise<void>;
};

const connectionsMaxDefault = 10_000;
const firstBytesMsDefault = 10_000;

export async function openPort(options: PortOptions): Promise<Port> {
  const { host, port, clock, http1, tls, connectionsMax = connectionsMaxDefault, report } = options;
  const sockets = new Set<Socket>();
  const h2s = new Set<H2Socket>();

  function adoptHttp1(socket: Socket): void {
    options.accepted?.("http/1.1");
    http1.emit("connection", socket);
    socket.resume(); // it was paused while its first bytes were looked at
  }

  function adoptH2(socket: Socket, firstBytes?: Buffer): void {
    options.accepted?.("h2");
    const peer = peerOf(socket, tls ? (socket as TLSSocket) : undefined);
    const h2 = new H2Socket(socket, {
      role: "server",
      clock,
      handler: {
        onRequest: (stream, headers, ended) => options.onRequest(stream, headers, ended, peer),
        onHandlerFailed: (error) => report?.("handle a request", error),
      },
      ...(options.h2 && { limits: options.h2 }),
      ...(firstBytes && { firstBytes }),
    });
    h2s.add(h2);
    void h2.closed.then(() => h2s.delete(h2));
  }

  function adopt(socket: Socket): void {
    sockets.add(socket);
    options.counted?.(1);
    socket.once("close", () => {
      sockets.delete(socket);
      options.counted?.(-1);
    });
    // Whoever takes the socket over listens too; until then a reset must not be anybody's surprise.
    socket.on("error", () => {});
    if (tls && (socket as TLSSocket).alpnProtocol === "h2") return adoptH2(socket);
    if (tls && (socket as TLSSocket).alpnProtocol === "http/1.1") return adoptHttp1(socket);
    const limitMs = options.firstBytesMs ?? firstBytesMsDefault;
    sniff(socket, clock, limitMs, (kind, firstBytes) => {
      if (kind === "h2") return adoptH2(socket, firstBytes);
      if (kind === "neither") return void socket.destroy();
      socket.unshift(firstBytes);
      adoptHttp1(socket);
    });
  }

  const server: Server = tls
    ? createTlsServer({ ALPNProtocols: ["h2", "http/1.1"], ...tls }, adopt)
    : createServer({ noDelay: true }, adopt);
  server.maxConnections = connectionsMax;
  return {
    port: await listening(server, host, port),
    setSecureContext: (next) => {
      if ("setSecureContext" in server) (server as ReturnType<typeof createTlsServer>).setSecureContext(next);
    },
    async close() {
      const stopped = new Promise<void>((done) => server.close(() => done()));
      http1.closeIdleConnections();
      await Promise.all(Array.from(h2s, (h2) => h2.drain()));
      for (const socket of sockets) socket.destroy();
      await stopped;
    },
  };
}
