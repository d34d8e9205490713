/** Tokens that are listed in the configuration. */
import { timingSafeEqual } from "node:crypto";
import { Fault } from "#base/fault.ts";
import type { Identified } from "./identified.ts";
import { principal, type Grant } from "#access/principal.ts";

export type StaticToken = Grant & { readonly sha256: string };

/** The principal of the token with this SHA-256 (lower-case hexadecimal), or undefined. */
export type StaticTokens = (sha256: string) => Identified | undefined;

/** Fault "invalid" when two principals share a token: it would not be clear which of them calls. */
export function staticTokens(tokens: readonly StaticToken[], proof: "token" | "owner" = "token"): StaticTokens {
  const known = new Map<string, { readonly digest: Buffer; readonly outcome: Identified; readonly name: string }>();
  for (const token of tokens) {
    const other = known.get(token.sha256);
    if (other)
      throw new Fault("invalid", "read tokens", {
        first: other.name,
        second: token.name,
        why: "both have the same token; give each its own",
      });
    known.set(token.sha256, {
      digest: Buffer.from(token.sha256, "hex"),
      outcome: { ok: true, principal: principal(token, proof), untilMs: Infinity },
      name: token.name,
    });
  }
  return (sha256) => {
    const found = known.get(sha256);
    // The map found it by a hash of a hash; the final comparison takes constant time.
    if (!found || !timingSafeEqual(Buffer.from(sha256, "hex"), found.digest)) return undefined;
    return found.outcome;
  };
}
