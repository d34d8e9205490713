/** The sockets that a node listens on for other nodes and for tools: bound, guarded, and bounded in number. */
import { createServer, type Server, type Socket } from "node:net";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import { Lobby } from "#base/calls/lobby.ts";
import type { GrpcServer } from "#grpc/server.ts";
import type { H2Limits } from "#h2/connection/limits.ts";
import { errorCode } from "#h2/frames/error-codes.ts";
import { H2Socket } from "#h2/socket.ts";
import { listenOnUnixSocket } from "#h2/unix-socket.ts";
import { formatAddress, isLoopback, type Endpoint } from "./tcp-address.ts";
import type { TcpLimits } from "./tcp.ts";
import { serverWith } from "./tcp-secret.ts";
import type { Listening } from "./transport.ts";

export type ListenOptions = {
  readonly clock: Clock;
  readonly limits: Pick<TcpLimits, "connectMs" | "connectionsMax" | "greetingMax">;
  readonly h2Limits: Partial<H2Limits>;
  /** What callers over TCP must know; left out: only this machine is listened to. */
  readonly secret?: string | undefined;
};

export async function listenOn(
  endpoint: Endpoint,
  grpc: GrpcServer<undefined>,
  { clock, limits, h2Limits, secret }: ListenOptions,
): Promise<Listening> {
  if (!isLoopback(endpoint) && secret === undefined)
    throw new Fault("invalid", "listen", {
      on: formatAddress(endpoint),
      why: "without authentication only this machine may call: use 127.0.0.1, ::1 or a Unix socket",
    });
  const connections = new Set<H2Socket>();
  /** Those that have asked something. */
  const callers = new Set<H2Socket>();
  const lobby = new Lobby<Socket>();
  const isSecret = secret !== undefined && endpoint.kind === "tcp"; // a Unix socket is guarded by its file's mode
  const server = isSecret ? serverWith(secret, limits.connectMs, acceptSecure) : createServer(accept);
  server.prependListener("connection", meet);
  server.maxConnections = limits.connectionsMax + 2 * limits.greetingMax; // some are being closed

  /** Every connection, before its handshake. */
  function meet(socket: Socket): void {
    const { greetingMax: max } = limits;
    // On this machine all come from one address.
    const perNetworkMax = isLoopback(endpoint) ? max : Math.ceil(max / 4);
    lobby.enter(socket, socket.remoteAddress ?? "", { max, perNetworkMax })?.guest.destroy();
    socket.on("error", () => {}); // "close" follows
    socket.once("close", () => lobby.leave(socket));
  }

  /** The peer knows the secret. */
  function acceptSecure(secure: Socket): void {
    for (const raw of lobby.guests) if (isSameEnd(raw, secure)) lobby.leave(raw);
    accept(secure);
  }

  function accept(socket: Socket): void {
    // Before the greeting: a peer that has asked nothing yet may ask elsewhere.
    if (!hasRoom()) return void socket.destroy();
    const h2: H2Socket = new H2Socket(socket, {
      role: "server",
      clock,
      limits: h2Limits,
      handler: {
        onRequest(stream, headers, ended) {
          lobby.leave(socket);
          if (!callers.has(h2)) admit(h2);
          return grpc.open(stream, headers, ended);
        },
      },
    });
    connections.add(h2);
    void h2.closed.then(() => {
      connections.delete(h2);
      callers.delete(h2);
    });
  }

  const idle = (): H2Socket | undefined => callers.values().find(({ connection }) => connection.streamCount === 0);
  const hasRoom = (): boolean => callers.size < limits.connectionsMax || idle() !== undefined;

  /** There was room for it when it came; those that came in the same moment may be a few too many. */
  function admit(h2: H2Socket): void {
    const leaving = callers.size < limits.connectionsMax ? undefined : idle();
    if (leaving) {
      callers.delete(leaving);
      leaving.close(errorCode.noError, "a newer connection needs its place");
    }
    callers.add(h2);
  }

  await open(server, endpoint);
  const bound = server.address();
  const address = formatAddress(
    endpoint.kind === "tcp" && bound !== null && typeof bound === "object"
      ? { ...endpoint, port: bound.port }
      : endpoint,
  );
  return {
    address,
    async close() {
      const closed = new Promise<void>((done) => server.close(() => done()));
      for (const h2 of connections) h2.close(errorCode.noError, "shutting down");
      await closed;
    },
  };
}

const isSameEnd = (one: Socket, other: Socket): boolean =>
  one.remotePort === other.remotePort && one.remoteAddress === other.remoteAddress;

async function open(server: Server, endpoint: Endpoint): Promise<void> {
  try {
    if (endpoint.kind === "unix") await listenOnUnixSocket(server, endpoint.path);
    else await bind(server, endpoint);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const why = code === "EADDRINUSE" ? "another process listens there" : undefined;
    throw new Fault("unavailable", "listen", { on: formatAddress(endpoint), errno: code, why }, cause);
  }
}

function bind(server: Server, { host, port }: { readonly host: string; readonly port: number }): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  server.listen(port, host, () => {
    server.off("error", reject);
    resolve();
  });
  return promise;
}
