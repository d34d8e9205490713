/**
 * Tokens that this cluster issues itself: any node signs them, every node verifies them, and so can others, by the
 * published keys.
 *
 * IS3 A token counts only for the audience that it was issued for, with the algorithm of our keys, and until its end.
 * IS4 A token that is bound to a claim counts only while that claim is live: a node that verifies one asks the
 *     claim's shard, and believes the answer for a second at most (grant-token.ts).
 */
import { randomUUID } from "node:crypto";
import { decodeProtectedHeader, errors, jwtVerify, SignJWT, type JWTPayload } from "jose";
import type { Clock } from "#base/clock.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { UnauthenticatedReason } from "#access/refusal.ts";
import type { RingRules } from "./key-ring.ts";
import { algorithm, IssuerKeys, type IssuerKeysPorts } from "./keys.ts";

export const tokenMsMax = 24 * 3_600_000;
const skewMs = 60_000;

export const ringRulesDefault: RingRules = {
  signsForMs: 30 * 24 * 3_600_000,
  announcedMs: 24 * 3_600_000,
  tokenMsMax,
  skewMs,
};

export type IssuerPorts = IssuerKeysPorts & {
  /** What tokens name as their issuer: an https address where others verify them, or any name. */
  readonly name: string;
  readonly rules?: RingRules;
};

/** What is written into a token. Its lifetime is cut to `tokenMsMax`. */
export type Wanted = {
  readonly audience: string;
  readonly subject: string;
  readonly forMs: number;
  readonly claims: Readonly<Record<string, unknown>>;
};

export type Verified =
  | { readonly ok: true; readonly claims: JWTPayload; readonly untilMs: number }
  | { readonly ok: false; readonly reason: UnauthenticatedReason };

export class Issuer {
  readonly name: string;
  readonly keys: IssuerKeys;
  readonly #clock: Pick<Clock, "wallMs">;

  constructor({ name, rules = ringRulesDefault, ...ports }: IssuerPorts) {
    this.name = name;
    this.keys = new IssuerKeys(ports, rules);
    this.#clock = ports.clock;
  }

  async issue({ audience, subject, forMs, claims }: Wanted): Promise<{ token: string; untilMs: number }> {
    const { signing } = await this.keys.ring();
    if (!signing) throw new Fault("unavailable", "issue a token", { why: "there is no key that signs" });
    const nowS = Math.floor(this.#clock.wallMs() / 1_000);
    const untilS = nowS + Math.ceil(Math.min(forMs, tokenMsMax) / 1_000);
    const token = await new SignJWT({ ...claims })
      .setProtectedHeader({ alg: algorithm, typ: "JWT", kid: signing.kid })
      .setIssuer(this.name)
      .setAudience(audience)
      .setSubject(subject)
      .setJti(randomUUID())
      .setIssuedAt(nowS)
      .setExpirationTime(untilS)
      .sign(signing.privateKey);
    return { token, untilMs: untilS * 1_000 };
  }

  /** IS3; whether a claim that it is bound to is live is for the caller to ask. */
  async verify(token: string, audience: string): Promise<Verified> {
    try {
      const { kid, alg } = decodeProtectedHeader(token);
      if (alg !== algorithm) return { ok: false, reason: "algorithm-refused" };
      const key = kid === undefined ? undefined : await this.keys.trusted(kid);
      if (!key) return { ok: false, reason: "signature-wrong" };
      const { payload } = await jwtVerify(token, key.publicKey, {
        algorithms: [algorithm],
        issuer: this.name,
        audience,
        requiredClaims: ["exp", "iat", "sub"],
        currentDate: new Date(this.#clock.wallMs()),
      });
      return { ok: true, claims: payload, untilMs: (payload.exp ?? 0) * 1_000 };
    } catch (error) {
      return { ok: false, reason: reasonOf(error) };
    }
  }
}

/** Anything that is not about this token is a bug, and is rethrown. */
function reasonOf(error: unknown): UnauthenticatedReason {
  if (isFault(error)) return "keys-unavailable";
  if (error instanceof errors.JWTExpired) return "token-expired";
  if (error instanceof errors.JWTClaimValidationFailed)
    return error.claim === "aud" ? "audience-wrong" : error.claim === "iss" ? "issuer-unknown" : "claims-insufficient";
  if (error instanceof errors.JOSEAlgNotAllowed || error instanceof errors.JOSENotSupported) return "algorithm-refused";
  if (error instanceof errors.JWSSignatureVerificationFailed) return "signature-wrong";
  if (error instanceof errors.JOSEError || error instanceof TypeError) return "token-malformed";
  throw error;
}
