/** What a delivery says of itself: its id, which stays the same in every attempt, and signatures of its body. */
import { createHmac, hash } from "node:crypto";

export type Delivery = {
  readonly id: string;
  readonly event: string;
  readonly body: string;
  /** Below the webhook's address; left out: there. */
  readonly path?: string | undefined;
};

/** How a format sends: left out, the secret signs. */
export type Sending = {
  readonly headers?: (secret: string) => Readonly<Record<string, string>>;
  readonly isFinal?: (status: number) => boolean;
};

export function requestOf(
  url: string,
  delivery: Delivery,
  secret: Buffer | string,
  { headers }: Sending,
  nowMs: number,
): { readonly url: string; readonly headers: Readonly<Record<string, string>> } {
  if (!headers) return { url, headers: headersOf(delivery, secret, nowMs) };
  return {
    url: `${url.replace(/\/+$/, "")}${delivery.path ?? ""}`,
    headers: {
      "content-type": "application/json",
      "user-agent": "millrace-webhook/1",
      "x-millrace-delivery": delivery.id,
      ...headers(secret.toString().trim()),
    },
  };
}

/** The same for the same item of the same webhook: receivers recognise what comes twice. */
export function deliveryId(webhook: string, item: string, n: number): string {
  const text = hash("sha256", `${webhook} ${item} ${n}`);
  return `${text.slice(0, 8)}-${text.slice(8, 12)}-${text.slice(12, 16)}-${text.slice(16, 20)}-${text.slice(20, 32)}`;
}

/** As GitHub signs (`x-hub-signature-256`), and as standardwebhooks.com says, with the time in it. */
export function headersOf({ id, event, body }: Delivery, secret: Buffer | string, nowMs: number) {
  const seconds = Math.floor(nowMs / 1_000);
  const key = keyOf(secret);
  return {
    "content-type": "application/json",
    "user-agent": "millrace-webhook/1",
    "x-millrace-event": event,
    "x-millrace-delivery": id,
    "x-github-event": event,
    "x-github-delivery": id,
    "x-hub-signature-256": `sha256=${createHmac("sha256", key).update(body).digest("hex")}`,
    "webhook-id": id,
    "webhook-timestamp": String(seconds),
    "webhook-signature": `v1,${createHmac("sha256", key).update(`${id}.${seconds}.${body}`).digest("base64")}`,
  };
}

/** A secret in the form of Standard Webhooks, whsec_ and base64, means those bytes. */
function keyOf(secret: Buffer | string): Buffer {
  const text = secret.toString();
  return text.startsWith("whsec_") ? Buffer.from(text.slice("whsec_".length), "base64") : Buffer.from(secret);
}
