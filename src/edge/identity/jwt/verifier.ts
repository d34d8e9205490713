/** JSON Web Tokens of configured issuers. Cheap checks come before the signature is verified. */
import { decodeJwt, errors, jwtVerify, type JWTPayload } from "jose";
import { isFault } from "#base/fault.ts";
import type { Identified } from "#edge/identity/identified.ts";
import type { IssuerConfig } from "#edge/identity/identity-config.ts";
import type { KeySet } from "./jwks.ts";
import { grantOf } from "./claims.ts";
import type { KeyRing } from "./key-ring.ts";
import { principal } from "#access/principal.ts";
import { unauthenticated, type UnauthenticatedReason } from "#access/refusal.ts";

export type JwtIssuer = { readonly config: IssuerConfig; readonly keys: KeyRing };

export type JwtVerifier = (token: string, nowMs: number) => Promise<Identified>;

/** Three parts in base64url; the first begins as every JSON object does. */
export const looksLikeJwt = (token: string): boolean => /^eyJ[\w-]*\.[\w-]+\.[\w-]*$/.test(token);

/** Tokens of this cluster itself: no configuration can name another issuer so. */
export type OwnTokens = { readonly issuer: string; readonly verify: JwtVerifier };

/** `nowMs` is the wall clock, which issuers write into tokens; the skew allows for its error. */
export function jwtVerifier(issuers: readonly JwtIssuer[], own?: OwnTokens): JwtVerifier {
  const byName = new Map(issuers.map((issuer) => [issuer.config.issuer, issuer]));
  return async (token, nowMs) => {
    const claims = unverifiedClaims(token);
    if (claims === undefined) return unauthenticated("token-malformed");
    if (own && claims.iss === own.issuer) return await own.verify(token, nowMs);
    const issuer = typeof claims.iss === "string" ? byName.get(claims.iss) : undefined;
    if (!issuer) return unauthenticated("issuer-unknown");
    if (typeof claims.exp === "number" && claims.exp * 1_000 <= nowMs - issuer.config.skew)
      return unauthenticated("token-expired"); // by far the most frequent case, and not worth verifying a signature
    try {
      return await verified(token, issuer, nowMs);
    } catch (error) {
      return unauthenticated(reasonOf(error));
    }
  };
}

function unverifiedClaims(token: string): JWTPayload | undefined {
  try {
    return decodeJwt(token);
  } catch {
    return undefined;
  }
}

async function verified(token: string, { config, keys }: JwtIssuer, nowMs: number): Promise<Identified> {
  const claims = await verifiedClaims(token, { config, keys }, nowMs);
  const expiresAtMs = (claims.exp ?? 0) * 1_000; // jose has checked that it is there
  // Counted from now at the latest: a token issued in the future would be valid for longer than allowed.
  const sinceMs = Math.min(nowMs, (claims.iat ?? Infinity) * 1_000);
  if (expiresAtMs - sinceMs > config.lifetimeMax) return unauthenticated("token-lifetime");
  const grant = grantOf(claims, config);
  if (!grant) return unauthenticated("claims-insufficient");
  return { ok: true, principal: principal(grant, "jwt"), untilMs: expiresAtMs + config.skew };
}

async function verifiedClaims(token: string, { config, keys }: JwtIssuer, nowMs: number): Promise<JWTPayload> {
  const check = async (keySet: KeySet): Promise<JWTPayload> => {
    const { payload } = await jwtVerify(token, keySet, {
      algorithms: [...config.algorithms],
      issuer: config.issuer,
      audience: [...config.audience],
      requiredClaims: ["exp"],
      clockTolerance: config.skew / 1_000,
      currentDate: new Date(nowMs),
    });
    return payload;
  };
  try {
    return await check(await keys.current());
  } catch (error) {
    if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
    const newer = await keys.newer(); // the issuer may have changed its keys since
    if (!newer) throw error;
    return await check(newer);
  }
}

/** Anything that is not about this token is a bug, and is rethrown. */
function reasonOf(error: unknown): UnauthenticatedReason {
  if (isFault(error) || error instanceof errors.JWKSInvalid || error instanceof errors.JWKInvalid)
    return "keys-unavailable";
  if (error instanceof errors.JWTExpired) return "token-expired";
  if (error instanceof errors.JWTClaimValidationFailed) return claimReasons[error.claim] ?? "claims-insufficient";
  if (error instanceof errors.JOSEAlgNotAllowed || error instanceof errors.JOSENotSupported) return "algorithm-refused";
  if (
    error instanceof errors.JWSSignatureVerificationFailed ||
    error instanceof errors.JWKSNoMatchingKey ||
    error instanceof errors.JWKSMultipleMatchingKeys
  )
    return "signature-wrong";
  if (error instanceof errors.JOSEError) return "token-malformed";
  throw error;
}

const claimReasons: Readonly<Record<string, UnauthenticatedReason>> = {
  aud: "audience-wrong",
  iss: "issuer-unknown",
  exp: "token-lifetime", // without it the token would be valid for ever
  nbf: "token-not-yet-valid",
};
