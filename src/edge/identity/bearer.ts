/**
 * Bearer tokens are opaque: a token is identified by its SHA-256, and only that is kept, compared or used as a key. A
 * caller cannot choose a hash, so the time of a look-up reveals nothing about the known tokens.
 */
import { hash, randomBytes } from "node:crypto";
import { unauthenticated, type Unauthenticated } from "#access/refusal.ts";

export type Bearer = { readonly ok: true; readonly token: string; readonly sha256: string };

/** The syntax of RFC 6750: letters, digits and -._~+/ with = at the end. */
const shape = /^[A-Za-z0-9._~+/-]+=*$/;

/** The token of an authorization header's value. Clients of GitHub's API write `token` for `Bearer`. */
export function readBearer(
  header: string,
  tokenLengthMax: number,
): Bearer | { readonly ok: false; readonly refusal: Unauthenticated } {
  const [scheme] = /^(?:bearer|token)(?: |$)/i.exec(header) ?? [];
  if (scheme === undefined) return unauthenticated("scheme-unsupported");
  if (header.length > scheme.length + tokenLengthMax) return unauthenticated("token-malformed");
  const token = header.slice(scheme.length);
  if (!shape.test(token)) return unauthenticated("token-malformed");
  return { ok: true, token, sha256: tokenSha256(token) };
}

export const tokenSha256 = (token: string): string => hash("sha256", token, "hex");

/** A new token: 256 random bits after a prefix that people and secret scanners recognise. */
export const newToken = (): string => `millrace_${randomBytes(32).toString("base64url")}`;

/** Why a text from a file cannot be a token, or undefined. Short ones can be guessed. */
export function tokenProblem(token: string, tokenLengthMax: number): string | undefined {
  if (token.length < tokenLengthMin) return `a token has at least ${tokenLengthMin} characters`;
  if (token.length > tokenLengthMax) return `a token has at most ${tokenLengthMax} characters`;
  return shape.test(token) ? undefined : "a token is one word of letters, digits and - . _ ~ + /";
}

const tokenLengthMin = 24;
