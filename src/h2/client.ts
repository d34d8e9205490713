/** Connects to an HTTP/2 server: without TLS by prior knowledge, or over TLS with ALPN. */
import { connect, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions as TlsConnectOptions, type TLSSocket } from "node:tls";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import type { ConnectionHandler } from "./connection/connection-handler.ts";
import type { H2Limits } from "./connection/limits.ts";
import { H2Socket } from "./socket.ts";

export type H2ClientOptions = {
  readonly host: string;
  readonly port: number;
  readonly clock: Clock;
  /** Trust and identity; without it the client does not use TLS. */
  readonly tls?: TlsConnectOptions;
  readonly limits?: Partial<H2Limits>;
  readonly handler?: Pick<ConnectionHandler, "onGoaway" | "onHandlerFailed">;
  /** From the start to an open socket, including the handshake. */
  readonly connectMs?: number;
};

/** Resolves when the socket is open; requests may be made at once, before the peer's settings arrive. */
export async function connectH2(options: H2ClientOptions): Promise<H2Socket> {
  const { host, port, clock, tls, limits, handler = {}, connectMs = 10_000 } = options;
  const socket: Socket | TLSSocket = tls
    ? connectTls({ host, port, ALPNProtocols: ["h2"], ...tls })
    : connect({ host, port, noDelay: true });
  const fault = (why: string, cause?: unknown): Fault =>
    new Fault("unavailable", "connect", { host, port, why }, cause);
  const opened = Promise.withResolvers<void>();
  const cancel = clock.after(connectMs, () => opened.reject(fault(`not open after ${connectMs} ms`)));
  const failed = (error: Error): void => opened.reject(fault(error.message, error));
  socket.once("error", failed);
  socket.once(tls ? "secureConnect" : "connect", () => opened.resolve());
  try {
    await opened.promise;
    if (tls && (socket as TLSSocket).alpnProtocol !== "h2") throw fault("the server does not offer HTTP/2");
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    cancel();
    socket.off("error", failed);
  }
  return new H2Socket(socket, { role: "client", clock, handler, ...(limits === undefined ? {} : { limits }) });
}
