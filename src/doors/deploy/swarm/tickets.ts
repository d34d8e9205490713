/**
 * Who may talk to whom. The node gives each machine a secret, and a machine that is to fetch from another one a ticket:
 * a name for the connection and a key that the node made from the other's secret. With these the two make a TLS
 * connection with pre-shared keys: each knows that the node meant the other, and no one else can read along.
 *
 * TK1 A ticket is for one machine that asks, one that answers, and one epoch; without the secret no one can make one.
 */
import { createHmac } from "node:crypto";

export type Ticket = {
  /** The machine that answers. */
  readonly peer: string;
  /** `host:port`, as the machine said it. */
  readonly address: string;
  readonly identity: string;
  /** Base64. */
  readonly key: string;
  readonly distance: "rack" | "region";
};

export type MachineSecret = { readonly epoch: number; readonly secret: string };

/** Tickets of the epoch before count too. A machine's own clock is not asked. */
export const epochMs = 6 * 3_600_000;
/** TLS 1.2: Node offers pre-shared keys there; the exchange is ephemeral, so that old recordings stay secret. */
export const peerTls = {
  ciphers: "ECDHE-PSK-CHACHA20-POLY1305",
  minVersion: "TLSv1.2",
  maxVersion: "TLSv1.2",
} as const;

const mac = (key: string, text: string): string =>
  createHmac("sha256", Buffer.from(key, "base64")).update(text).digest("base64");

export const secretOf = (clusterKey: string, tenant: string, machine: string, epoch: number): MachineSecret => ({
  epoch,
  secret: mac(clusterKey, JSON.stringify(["machine", tenant, machine, epoch])),
});

export function ticketOf(
  secret: MachineSecret,
  from: string,
  to: { readonly peer: string; readonly address: string; readonly distance: Ticket["distance"] },
): Ticket {
  const identity = Buffer.from(JSON.stringify([from, to.peer, secret.epoch, to.distance])).toString("base64url");
  return { ...to, identity, key: mac(secret.secret, identity) };
}

/** On the machine that answers: the key for a connection of this name, and who is at its other end. */
export function keyFor(
  identity: string,
  me: string,
  secrets: readonly MachineSecret[],
): { readonly from: string; readonly distance: Ticket["distance"]; readonly key: Buffer } | undefined {
  let parts: unknown;
  try {
    parts = JSON.parse(Buffer.from(identity, "base64url").toString("utf8"));
  } catch {
    return undefined;
  }
  if (!Array.isArray(parts) || parts.length !== 4) return undefined;
  const [from, to, epoch, distance] = parts as unknown[];
  const secret = secrets.find((each) => each.epoch === epoch);
  if (typeof from !== "string" || to !== me || !secret) return undefined;
  if (distance !== "rack" && distance !== "region") return undefined;
  return { from, distance, key: Buffer.from(mac(secret.secret, identity), "base64") };
}
