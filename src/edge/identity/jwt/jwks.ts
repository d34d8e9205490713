/** Checks a JWK Set before it is used: public keys only, and not too many. */
import { createLocalJWKSet, type JSONWebKeySet, type JWTVerifyGetKey } from "jose";
import { Fault } from "#base/fault.ts";

export type KeySet = JWTVerifyGetKey;

const keysMax = 100;
/** A key with any of these members can sign. */
const privateMembers = ["d", "k", "p", "q", "dp", "dq", "qi", "oth", "priv"] as const;

export function keySetOfText(text: string, from: string): KeySet {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (cause) {
    throw refused(from, 'it is not JSON; a key set looks like {"keys": [...]}', cause);
  }
  const keys = (parsed as { readonly keys?: unknown } | null)?.keys;
  if (!Array.isArray(keys)) throw refused(from, 'there is no list of keys in it; a key set looks like {"keys": [...]}');
  return keySet(keys, from);
}

/** Keys of an unknown type are skipped when a token is verified, not refused here: some issuers have them. */
export function keySet(keys: readonly unknown[], from: string): KeySet {
  if (keys.length === 0 || keys.length > keysMax)
    throw refused(from, `it has ${keys.length} keys; expected are 1 to ${keysMax}`);
  for (const key of keys) {
    if (typeof key !== "object" || key === null || typeof (key as { kty?: unknown }).kty !== "string")
      throw refused(from, "one of its keys is not a JWK: each must be an object with kty");
    if ((key as { kty: string }).kty === "oct" || privateMembers.some((member) => Object.hasOwn(key, member)))
      throw refused(from, "one of its keys is secret; list the public key, and replace the secret one: it was exposed");
  }
  try {
    return createLocalJWKSet({ keys } as JSONWebKeySet);
  } catch (cause) {
    throw refused(from, "it is not a JWK Set", cause);
  }
}

const refused = (from: string, why: string, cause?: unknown): Fault =>
  new Fault("invalid", "read an issuer's keys", { from, why }, cause);
