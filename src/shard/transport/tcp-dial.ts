/** A connection to a node: HTTP/2 over TCP or a Unix socket, with the cluster's secret where it has one. */
import { connect, type Socket } from "node:net";
import type { Clock } from "#base/clock.ts";
import { Fault } from "#base/fault.ts";
import type { H2Limits } from "#h2/connection/limits.ts";
import { H2Socket } from "#h2/socket.ts";
import { parseAddress } from "./tcp-address.ts";
import { dialWith } from "./tcp-secret.ts";
import type { Address } from "./transport.ts";

export type DialOptions = {
  readonly clock: Clock;
  readonly limits: Partial<H2Limits>;
  readonly secret?: string | undefined;
};

/**
 * Resolves when the other end has greeted: what is asked after that has reached a node that speaks the protocol, and
 * what failed before was surely not delivered.
 */
export async function dial(address: Address, { clock, limits, secret }: DialOptions): Promise<H2Socket> {
  const ready = Promise.withResolvers<void>();
  const socket = socketTo(address, secret);
  const h2 = new H2Socket(socket, { role: "client", clock, limits, handler: { onReady: () => ready.resolve() } });
  void h2.closed.then(({ why }) => ready.reject(new Fault("unavailable", "connect", { to: address, why })));
  await ready.promise;
  return h2;
}

function socketTo(address: Address, secret: string | undefined): Socket {
  const endpoint = parseAddress(address);
  if (endpoint.kind === "unix") return connect(endpoint.path);
  const { port, host } = endpoint;
  return secret === undefined ? connect(port, host) : dialWith(secret, port, host);
}
