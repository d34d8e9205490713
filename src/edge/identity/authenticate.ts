/**
 * Identifies the caller from everything that a call carries. A network address is not a credential: without
 * credentials, callers on this machine get what `anonymous` says, and tasks of this node get nothing (I4).
 *
 * I1. The credentials that were shown decide. A bad token, or an expired browser session (admission.ts), is refused; it
 * never falls back to a certificate, and neither falls back to anonymous.
 * I2. Only hashes of tokens are kept and compared; no refusal contains anything that depends on a secret.
 * I3. Known credentials are answered at once; only a JWT that was not seen before is verified, and a limited number at
 * a time.
 * I4. A task of this node is never anonymous: while a task shares the node's network, a caller without credentials is
 * refused unless it is known not to be a task.
 */
import type { Clock } from "#base/clock.ts";
import { networkOf } from "#base/calls/lobby.ts";
import { readBearer } from "./bearer.ts";
import type { CertificateRules } from "./certificate-rules.ts";
import type { Identified } from "./identified.ts";
import { isLoopbackHost } from "./loopback.ts";
import { looksLikeJwt, type JwtVerifier } from "./jwt/verifier.ts";
import type { PeerCertificate } from "#edge/tls/peer-certificate.ts";
import type { Principal } from "#access/principal.ts";
import { unauthenticated } from "#access/refusal.ts";
import type { StaticTokens } from "./static-tokens.ts";
import { VerifiedCache } from "./verified-cache.ts";

export type Credentials = {
  readonly authorization: string | undefined;
  readonly certificate: PeerCertificate | undefined;
  /** The caller's network address; "unix" for a Unix socket. */
  readonly address: string;
  /** Whether the caller is a task of this node (I4); left out: there are none. */
  readonly isTask?: (() => TaskVerdict | Promise<TaskVerdict>) | undefined;
};

/** `unclear`: it may be a task, and this cannot be determined. */
export type TaskVerdict = "no" | "task" | "unclear";

/** The data folder's token: its holder is an operator, on this machine only, so that a copy is useless elsewhere. */
export type OwnerToken = { readonly sha256: string };

/** What a session was given for: a token that is listed, or whatever the rules for JWTs and certificates accept. */
export type Credential =
  | { readonly kind: "token" | "owner"; readonly sha256: string }
  | { readonly kind: "rules"; readonly rules: string };

/** Everything known about callers; replaced as a whole when one of its files changes. */
export type KnownCallers = {
  readonly tokens: StaticTokens;
  readonly owner?: StaticTokens | undefined;
  readonly verifyJwt: JwtVerifier | undefined;
  readonly certificates: CertificateRules | undefined;
  readonly anonymous: { readonly outcome: Identified; readonly loopbackOnly: boolean } | undefined;
  /** A digest of the rules for JWTs and certificates: nodes with the same rules have the same. */
  readonly rules?: string;
};

export type AuthenticatorLimits = {
  readonly tokenLengthMax: number;
  readonly verifiedMax: number;
  readonly verifiedForMs: number;
  readonly verifyingMax: number;
  /** Of these, for callers of one address (IPv6: of one /64 network). */
  readonly verifyingPerAddressMax: number;
};

type NewToken = { readonly token: string; readonly sha256: string; readonly network: string };

export class Authenticator {
  readonly #limits: AuthenticatorLimits;
  readonly #clock: Clock;
  readonly #verified: VerifiedCache;
  readonly #verifying = new Map<string, Promise<Identified>>();
  /** How many are being verified for each network. */
  readonly #verifyingFor = new Map<string, number>();
  #known: KnownCallers;
  #generation = 0;

  constructor(known: KnownCallers, limits: AuthenticatorLimits, clock: Clock) {
    this.#known = known;
    this.#limits = limits;
    this.#clock = clock;
    this.#verified = new VerifiedCache(limits.verifiedMax);
  }

  /** Grows whenever earlier results become invalid. */
  get generation(): number {
    return this.#generation;
  }

  /** Whether callers on this machine may do something without credentials, and others may not. */
  get trustsItsMachine(): boolean {
    return this.#known.anonymous?.loopbackOnly === true;
  }

  get rules(): string {
    return this.#known.rules ?? "";
  }

  /** The present principal of these credentials; "as it was" where only the rules can say so; undefined: they ended. */
  stillGranted(credential: Credential): Principal | "as it was" | undefined {
    if (credential.kind === "rules") return credential.rules === this.rules ? "as it was" : undefined;
    const { tokens, owner } = this.#known;
    const found = (credential.kind === "owner" ? owner : tokens)?.(credential.sha256);
    return found?.ok === true ? found.principal : undefined;
  }

  /** Forgets all results that are based on the old settings. */
  replace(known: KnownCallers): void {
    this.#known = known;
    this.#generation += 1;
    this.#verified.clear();
    this.#verifying.clear();
  }

  authenticate({ authorization, certificate, address, isTask }: Credentials): Identified | Promise<Identified> {
    if (authorization !== undefined) return this.#byToken(authorization, address);
    const { certificates, anonymous } = this.#known;
    if (certificate !== undefined && certificates) return certificates(certificate);
    if (!anonymous || (anonymous.loopbackOnly && !isHere(address))) return unauthenticated("credentials-missing");
    const verdict = isTask?.() ?? "no";
    return verdict instanceof Promise
      ? verdict.then((later) => unlessTask(later, anonymous.outcome))
      : unlessTask(verdict, anonymous.outcome);
  }

  #byToken(authorization: string, address: string): Identified | Promise<Identified> {
    const bearer = readBearer(authorization, this.#limits.tokenLengthMax);
    if (!bearer.ok) return bearer;
    const { token, sha256 } = bearer;
    const { tokens, owner } = this.#known;
    const owned = isHere(address) ? owner?.(sha256) : undefined;
    const known = tokens(sha256) ?? owned ?? this.#verified.get(sha256, this.#clock);
    if (known) return known;
    const { verifyJwt } = this.#known;
    if (!verifyJwt || !looksLikeJwt(token)) return unauthenticated("token-unknown");
    return this.#verifying.get(sha256) ?? this.#verify({ token, sha256, network: networkOf(address) }, verifyJwt);
  }

  #verify({ token, sha256, network }: NewToken, verifyJwt: JwtVerifier): Identified | Promise<Identified> {
    const { verifyingMax, verifyingPerAddressMax } = this.#limits;
    const forNetwork = this.#verifyingFor.get(network) ?? 0;
    if (this.#verifying.size >= verifyingMax || forNetwork >= verifyingPerAddressMax)
      return unauthenticated("verifier-busy");
    this.#verifyingFor.set(network, forNetwork + 1);
    const generation = this.#generation;
    const sinceMono = this.#clock.monotonicMs();
    const verifying = verifyJwt(token, this.#clock.wallMs())
      .then((outcome) => {
        if (!outcome.ok) return outcome;
        const forMs = Math.min(this.#limits.verifiedForMs, outcome.verifiedForMs ?? Infinity);
        const kept = { ...outcome, verifiedUntilMono: sinceMono + forMs };
        if (generation === this.#generation) this.#verified.put(sha256, kept);
        return kept;
      })
      .finally(() => {
        const left = (this.#verifyingFor.get(network) ?? 1) - 1;
        if (left > 0) this.#verifyingFor.set(network, left);
        else this.#verifyingFor.delete(network);
        if (this.#verifying.get(sha256) === verifying) this.#verifying.delete(sha256);
      });
    this.#verifying.set(sha256, verifying);
    return verifying;
  }
}

const isHere = (address: string): boolean => address === "unix" || isLoopbackHost(address);

function unlessTask(verdict: TaskVerdict, outcome: Identified): Identified {
  if (verdict === "no") return outcome;
  return unauthenticated(verdict === "task" ? "caller-is-task" : "caller-unclear");
}
