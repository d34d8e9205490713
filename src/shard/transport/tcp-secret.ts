/**
 * Connections between nodes on different machines: TLS with a pre-shared key (TLS-PSK, with an ephemeral key exchange
 * for each connection). A peer that does not know the cluster's secret fails the handshake, and neither end needs a
 * certificate.
 *
 * Node supports pre-shared keys in TLS 1.2 only. The one cipher that is offered has forward secrecy: recorded traffic
 * stays secret even if the cluster's secret leaks later.
 */
import { createHash } from "node:crypto";
import type { Server, Socket } from "node:net";
import { connect, createServer } from "node:tls";

const offered = { ciphers: "ECDHE-PSK-CHACHA20-POLY1305", minVersion: "TLSv1.2", maxVersion: "TLSv1.2" } as const;

/** The key's identity: there is one secret per cluster. */
const identity = "millrace";

/** Derives the key from the secret. The secret is not a password: nothing here slows down guessing. */
const keyOf = (secret: string): Buffer => createHash("sha256").update(`millrace node ${secret}`).digest();

export function dialWith(secret: string, port: number, host: string): Socket {
  const psk = keyOf(secret);
  return connect({
    port,
    host,
    ...offered,
    pskCallback: () => ({ psk, identity }),
    checkServerIdentity: () => undefined, // the shared key authenticates the peer
  });
}

export function serverWith(secret: string, handshakeMs: number, accept: (socket: Socket) => void): Server {
  const psk = keyOf(secret);
  const pskCallback = (_socket: unknown, named: string): Buffer | null => (named === identity ? psk : null);
  const server = createServer({ ...offered, handshakeTimeout: handshakeMs, pskCallback }, accept);
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  return server;
}
