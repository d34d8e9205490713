/** Listens for HTTP/2: without TLS by prior knowledge, or over TLS with ALPN. */
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type TlsOptions, type TLSSocket } from "node:tls";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import type { HeaderList } from "./hpack/header-list.ts";
import type { H2Limits } from "./connection/limits.ts";
import { H2Socket } from "./socket.ts";
import type { Stream, StreamHandler } from "./connection/stream.ts";

export type H2ServerOptions = {
  readonly host: string;
  readonly port: number;
  readonly clock: Clock;
  readonly onRequest: (stream: Stream, headers: HeaderList, ended: boolean) => StreamHandler;
  readonly onHandlerFailed?: (error: unknown, stream: Stream) => void;
  /** Certificate and key; without them the server does not use TLS. */
  readonly tls?: TlsOptions;
  readonly limits?: Partial<H2Limits>;
  /** Takes CONNECT with a :protocol (RFC 8441). */
  readonly takesProtocols?: boolean;
  /** Concurrent connections; more are closed as they come. */
  readonly connectionsMax?: number;
};

export type H2Server = {
  readonly port: number;
  readonly connections: ReadonlySet<H2Socket>;
  /** Drains every connection, then stops. */
  close(): Promise<void>;
};

export async function listenH2(options: H2ServerOptions): Promise<H2Server> {
  const {
    host,
    port,
    clock,
    onRequest,
    onHandlerFailed,
    tls,
    limits,
    takesProtocols,
    connectionsMax = 10_000,
  } = options;
  const connections = new Set<H2Socket>();

  function adopt(socket: Socket): void {
    const h2 = new H2Socket(socket, {
      role: "server",
      clock,
      handler: { onRequest, ...(onHandlerFailed === undefined ? {} : { onHandlerFailed }) },
      ...(limits === undefined ? {} : { limits }),
      ...(takesProtocols === undefined ? {} : { takesProtocols }),
    });
    connections.add(h2);
    void h2.closed.then(() => connections.delete(h2));
  }

  const server: Server = tls
    ? createTlsServer({ ALPNProtocols: ["h2"], ...tls }, (socket: TLSSocket) => {
        if (socket.alpnProtocol === "h2") adopt(socket);
        else socket.destroy();
      })
    : createServer({ noDelay: true }, adopt);
  server.maxConnections = connectionsMax;
  return {
    port: await listening(server, host, port),
    connections,
    async close() {
      const stopped = new Promise<void>((done) => server.close(() => done()));
      await Promise.all(Array.from(connections, (h2) => h2.drain()));
      await stopped;
    },
  };
}

/** Resolves with the port that it listens on. Fault "exhausted": another program listens there. */
export async function listening(server: Server, host: string, port: number): Promise<number> {
  server.on("tlsClientError", () => {}); // one client's handshake failed; its socket is already gone
  await new Promise<void>((opened, refused) => {
    server.once("error", (cause: NodeJS.ErrnoException) => {
      if (cause.code !== "EADDRINUSE")
        return refused(new Fault("unavailable", "listen", { host, port, errno: cause.code }, cause));
      refused(new Fault("exhausted", "listen", { host, port, why: "another program listens there" }, cause));
    });
    server.listen(port, host, () => opened());
  });
  return (server.address() as AddressInfo).port;
}
