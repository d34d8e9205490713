/**
 * Connections between nodes of different machines: TLS whose key both ends already have (TLS-PSK, with a fresh key for
 * each connection agreed on under it). Who does not know the cluster's secret gets no further than the handshake, and
 * neither end needs a certificate.
 *
 * Node knows pre-shared keys in TLS 1.2 only. The one cipher that is offered keeps what was said secret even when the
 * cluster's secret becomes known later.
 */
import { createHash } from "node:crypto";
import type { Server, Socket } from "node:net";
import { connect, createServer } from "node:tls";

const offered = { ciphers: "ECDHE-PSK-CHACHA20-POLY1305", minVersion: "TLSv1.2", maxVersion: "TLSv1.2" } as const;

/** Names the key, which has no other name: there is one secret a cluster. */
const identity = "millrace";

/** What both ends make of the secret. It is no password: nothing here slows down who guesses. */
const keyOf = (secret: string): Buffer => createHash("sha256").update(`millrace node ${secret}`).digest();

export function dialWith(secret: string, port: number, host: string): Socket {
  const psk = keyOf(secret);
  return connect({
    port,
    host,
    ...offered,
    pskCallback: () => ({ psk, identity }),
    checkServerIdentity: () => undefined, // who has the key is who is meant
  });
}

export function serverWith(secret: string, handshakeMs: number, accept: (socket: Socket) => void): Server {
  const psk = keyOf(secret);
  const pskCallback = (_socket: unknown, named: string): Buffer | null => (named === identity ? psk : null);
  const server = createServer({ ...offered, handshakeTimeout: handshakeMs, pskCallback }, accept);
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  return server;
}
