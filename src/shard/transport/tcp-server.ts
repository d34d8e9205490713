/** The serving end: calls come in, handlers answer, and streams flow as fast as the reader gives credit. */
import { chmodSync, unlinkSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import { Lobby } from "#base/lobby.ts";
import type { Frame } from "./frames.ts";
import { formatAddress, isLoopback, type Endpoint } from "./tcp-address.ts";
import { Connection, type ConnectionLimits } from "./tcp-connection.ts";
import { serverWith } from "./tcp-secret.ts";
import { writeFault } from "./tcp-fault.ts";
import type { Listening } from "./transport.ts";

/** The methods that may be called: `call` has one answer, `stream` has many. */
export type Handlers = {
  readonly call: Readonly<Record<string, (body: unknown, signal: AbortSignal) => Promise<unknown>>>;
  readonly stream: Readonly<Record<string, (body: unknown, signal: AbortSignal) => AsyncIterable<unknown>>>;
};

export type ServerLimits = ConnectionLimits & {
  /** Connections whose peer has sent its hello. Above this, one without a call is closed for a new one. */
  readonly connectionsMax: number;
  /** Connections before their hello. Above this, the one that has waited longest is closed. */
  readonly greetingMax: number;
  /** Concurrent calls and streams per connection. */
  readonly servedMax: number;
};

export type ListenOptions = {
  readonly clock: Clock;
  readonly limits: ServerLimits;
  /** The secret that callers over TCP must know; left out: only connections from this machine are accepted. */
  readonly secret?: string | undefined;
};

export async function listenOn(
  endpoint: Endpoint,
  handlers: Handlers,
  { clock, limits, secret }: ListenOptions,
): Promise<Listening> {
  if (!isLoopback(endpoint) && secret === undefined)
    throw new Fault("invalid", "listen", {
      on: formatAddress(endpoint),
      why: "without authentication only this machine may call: use 127.0.0.1, ::1 or a Unix socket",
    });
  const connections = new Set<Connection>();
  const greeted = new Map<Connection, RunningCalls>();
  const lobby = new Lobby<Socket>();
  const tooMany = new Fault("exhausted", "accept connection", { connectionsMax: limits.connectionsMax });
  const isSecret = secret !== undefined && endpoint.kind === "tcp"; // file permissions protect a Unix socket
  const server = isSecret ? serverWith(secret, limits.connectMs, acceptSecure) : createServer(accept);
  server.prependListener("connection", meet);
  server.maxConnections = limits.connectionsMax + 2 * limits.greetingMax; // some are being closed

  /** Called for every connection, before its handshake. */
  function meet(socket: Socket): void {
    const { greetingMax: max } = limits;
    // On this machine all connections come from one address.
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
    const connection = new Connection(socket, clock, limits);
    // At once: a peer that has not asked anything yet may ask elsewhere.
    if (!hasRoom()) return connection.closePolitely(tooMany);
    connections.add(connection);
    const running = serve(connection, handlers, limits);
    connection.ready.then(
      () => {
        lobby.leave(socket);
        greet(connection, running);
      },
      () => {},
    );
    void connection.closed.then(() => {
      connections.delete(connection);
      greeted.delete(connection);
    });
  }

  const idle = (): Connection | undefined => [...greeted].find(([, calls]) => calls.size === 0)?.[0];
  const hasRoom = (): boolean => greeted.size < limits.connectionsMax || idle() !== undefined;

  function greet(connection: Connection, running: RunningCalls): void {
    if (!hasRoom()) return connection.closePolitely(tooMany);
    const leaving = greeted.size < limits.connectionsMax ? undefined : idle();
    if (leaving) {
      greeted.delete(leaving);
      leaving.closePolitely(tooMany);
    }
    greeted.set(connection, running);
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
      for (const connection of connections)
        connection.closePolitely(new Fault("unavailable", "serve", { why: "shutting down" }));
      await closed;
    },
  };
}

const isSameEnd = (one: Socket, other: Socket): boolean =>
  one.remotePort === other.remotePort && one.remoteAddress === other.remoteAddress;

type RunningCalls = ReadonlyMap<number, Served>;

function serve(connection: Connection, handlers: Handlers, limits: ServerLimits): RunningCalls {
  const running = new Map<number, Served>();
  connection.onFrame = ({ kind, id, body }: Frame) => {
    if (kind === "cancel")
      return running.get(id)?.abort.abort(new Fault("unavailable", "serve call", { why: "cancelled by the caller" }));
    if (kind === "credit") return running.get(id)?.addCredit(Number(body));
    if (kind !== "call") throw new Fault("invalid", "read call", { kind });
    if (running.size >= limits.servedMax || running.has(id))
      return connection.send(
        "fault",
        id,
        writeFault(new Fault("exhausted", "serve call", { servedMax: limits.servedMax }), ""),
      );
    const served = new Served(connection, id, body as CallBody);
    running.set(id, served);
    void served.run(handlers).finally(() => running.delete(id));
  };
  void connection.closed.then((why) => {
    for (const served of running.values()) served.abort.abort(why);
  });
  return running;
}

type CallBody = { readonly method?: unknown; readonly body?: unknown; readonly credit?: unknown } | undefined;

class Served {
  readonly abort = new AbortController();
  readonly #connection: Connection;
  readonly #id: number;
  readonly #method: string;
  readonly #body: unknown;
  #credit: number;
  #wake: () => void = () => {};

  constructor(connection: Connection, id: number, call: CallBody) {
    this.#connection = connection;
    this.#id = id;
    this.#method = String(call?.method);
    this.#body = call?.body;
    this.#credit = Number(call?.credit ?? 0);
    this.abort.signal.addEventListener("abort", () => this.#wake(), { once: true });
  }

  addCredit(count: number): void {
    if (count > 0) this.#credit += count;
    this.#wake();
  }

  async run({ call, stream }: Handlers): Promise<void> {
    try {
      const method = this.#method;
      if (Object.hasOwn(call, method)) this.#say("answer", await call[method]?.(this.#body, this.abort.signal));
      else if (Object.hasOwn(stream, method))
        await this.#pump(stream[method]?.(this.#body, this.abort.signal) ?? none());
      else throw new Fault("not-found", "serve call", { method: method.slice(0, 100) });
    } catch (error) {
      this.#say("fault", writeFault(error, `serve ${this.#method}`));
    }
  }

  async #pump(messages: AsyncIterable<unknown>): Promise<void> {
    for await (const message of messages) {
      while (this.#credit <= 0 && !this.abort.signal.aborted)
        await new Promise<void>((wake) => {
          this.#wake = wake;
        });
      if (this.abort.signal.aborted) return;
      this.#credit -= 1;
      this.#say("item", message);
      await this.#connection.drained();
    }
    this.#say("end", undefined);
  }

  /** The caller of a cancelled call gets no answer; an answer too large for a frame becomes a fault. */
  #say(kind: "answer" | "item" | "end" | "fault", body: unknown): void {
    if (this.#connection.isOpen && !this.abort.signal.aborted) this.#connection.send(kind, this.#id, body);
  }
}

async function* none(): AsyncGenerator<never> {}

/** Binds the socket. A socket file without a listener was left by a crash and is removed. */
async function open(server: Server, endpoint: Endpoint): Promise<void> {
  try {
    await bind(server, endpoint);
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code;
    const where = formatAddress(endpoint);
    if (code !== "EADDRINUSE" || endpoint.kind !== "unix" || (await answers(endpoint.path)))
      throw new Fault(
        "unavailable",
        "listen",
        { on: where, errno: code, why: code === "EADDRINUSE" ? "another process listens there" : undefined },
        cause,
      );
    unlinkSync(endpoint.path);
    await bind(server, endpoint);
  }
  if (endpoint.kind === "unix" && process.platform !== "win32") chmodSync(endpoint.path, 0o600);
}

function bind(server: Server, endpoint: Endpoint): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  const bound = (): void => {
    server.off("error", reject);
    resolve();
  };
  if (endpoint.kind === "unix") privately(() => server.listen(endpoint.path, bound));
  else server.listen(endpoint.port, endpoint.host, bound);
  return promise;
}

/** Creates the socket so that it is private to its owner from the first moment. */
function privately(listen: () => void): void {
  const before = process.umask(0o177);
  try {
    listen();
  } finally {
    process.umask(before);
  }
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(path);
    probe.once("connect", () => {
      probe.destroy();
      resolve(true);
    });
    probe.once("error", () => resolve(false));
  });
}
