/** Who sent a webhook, and whether it was signed with the repository's secret. Pure. */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";

export const forges = ["github", "gitea", "gitlab"] as const;
export type Forge = (typeof forges)[number];

/** What its headers say of a delivery. */
export type Heading = {
  readonly forge: Forge;
  /** As the forge calls it: `push`, `Push Hook`. */
  readonly event: string;
  /** The forge's own id of the delivery: the same for each time that it is sent. */
  readonly id: string;
};

const wordShape = /^[\x21-\x7e][\x20-\x7e]{0,199}$/;

/** Undefined for what is no webhook of a forge that is known. Gitea also sends the headers of GitHub. */
export function headingOf(headers: Headers): Heading | undefined {
  const first = (...names: readonly string[]): string => names.map((name) => headers.get(name)).find(Boolean) ?? "";
  const headings: readonly Heading[] = [
    {
      forge: "gitea",
      event: first("x-forgejo-event", "x-gitea-event"),
      id: first("x-forgejo-delivery", "x-gitea-delivery"),
    },
    {
      forge: "gitlab",
      event: first("x-gitlab-event"),
      id: first("idempotency-key", "x-gitlab-event-uuid"),
    },
    { forge: "github", event: first("x-github-event"), id: first("x-github-delivery") },
  ];
  return headings.find(({ event, id }) => wordShape.test(event) && wordShape.test(id));
}

/** In constant time. GitLab sends the secret itself; the others sign the body with it. */
export function isSigned(forge: Forge, headers: Headers, body: Uint8Array, secret: Uint8Array): boolean {
  if (secret.length === 0) return false;
  if (forge === "gitlab") return isSame(Buffer.from(headers.get("x-gitlab-token") ?? ""), secret);
  const wanted = createHmac("sha256", secret).update(body).digest();
  const names = forge === "gitea" ? ["x-forgejo-signature", "x-gitea-signature"] : [];
  const given = [...names, "x-hub-signature-256"].map((name) => headers.get(name)).find(Boolean) ?? "";
  const hex = given.replace(/^sha256=/, "");
  return /^[0-9a-f]{64}$/i.test(hex) && isSame(Buffer.from(hex, "hex"), wanted);
}

/** Hashes have one length, so that neither length nor content decides how long it takes. */
function isSame(given: Uint8Array, wanted: Uint8Array): boolean {
  const hash = (bytes: Uint8Array): Buffer => createHash("sha256").update(bytes).digest();
  return timingSafeEqual(hash(given), hash(wanted));
}

/** The JSON in a body: itself, or the field of a form that GitHub can be told to send. Undefined for anything else. */
export function payloadIn(contentType: string, body: Uint8Array): Readonly<Record<string, unknown>> | undefined {
  const text = Buffer.from(body).toString("utf8");
  const isForm = contentType.startsWith("application/x-www-form-urlencoded");
  try {
    const value: unknown = JSON.parse(isForm ? (new URLSearchParams(text).get("payload") ?? "") : text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as Readonly<Record<string, unknown>>) : undefined;
  } catch {
    return undefined;
  }
}
