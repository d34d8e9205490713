/** The text of a token that registers workers: whose it is, which it is, and the secret that proves it. */
import { hash, randomBytes, timingSafeEqual } from "node:crypto";

const prefix = "mrw1";
const secretBytes = 32;

export type RegistrationToken = { readonly tenant: string; readonly id: string; readonly secret: string };

export const newRegistration = (tenant: string): RegistrationToken => ({
  tenant,
  id: `r-${randomBytes(6).toString("hex")}`,
  secret: randomBytes(secretBytes).toString("base64url"),
});

export const registrationText = ({ tenant, id, secret }: RegistrationToken): string =>
  [prefix, Buffer.from(tenant).toString("base64url"), id, secret].join(".");

/** Undefined for any other text. */
export function readRegistration(text: string): RegistrationToken | undefined {
  const [first, tenant = "", id = "", secret = "", ...more] = text.trim().split(".");
  if (first !== prefix || more.length > 0 || !/^r-[0-9a-f]{12}$/.test(id) || secret.length < 40) return undefined;
  return { tenant: Buffer.from(tenant, "base64url").toString("utf8"), id, secret };
}

/** Only this is kept. */
export const secretHash = (secret: string): string => hash("sha256", secret);

export const isSecret = (secret: string, sha256: string): boolean =>
  timingSafeEqual(Buffer.from(secretHash(secret), "hex"), Buffer.from(sha256, "hex"));
