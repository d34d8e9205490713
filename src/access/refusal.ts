/** All refusals at the edge. Their texts never depend on a secret. */
import type { Role } from "./principal.ts";

export const unauthenticatedReasons = {
  "credentials-missing":
    "this needs credentials: send a bearer token (on the node's machine: the data folder's operator.token)",
  "caller-is-task":
    "the caller is a task of this node, and a task has no rights of its own here: give it a token to call with",
  "caller-unclear":
    "tasks of this node share its network, and it cannot be seen whether the caller is one: call with a token",
  "session-unknown": "this browser's session has ended: get a new link with `millrace login`",
  "scheme-unsupported": "only bearer tokens are understood: authorization: Bearer <token>",
  "token-malformed": "the bearer token is empty, too long, or has characters that no token has",
  "token-unknown": "the bearer token is not known here",
  "token-expired": "the bearer token has expired: get a new one",
  "token-not-yet-valid": "the bearer token is not valid yet: look at the clocks of the issuer and of this node",
  "token-lifetime": "the bearer token is valid for longer than this node accepts: ask for a shorter one",
  "issuer-unknown": "the bearer token's issuer is not one that this node trusts",
  "audience-wrong": "the bearer token was issued for another audience (aud)",
  "algorithm-refused": "the bearer token is signed with an algorithm that this node does not accept",
  "signature-wrong": "the bearer token's signature does not fit the issuer's keys",
  "claims-insufficient": "the bearer token is genuine, but gives no tenant or no role here",
  "keys-unavailable": "the issuer's keys cannot be read at the moment: try again",
  "verifier-busy": "too many new tokens are being verified at the moment: try again",
  "claim-over": "the bearer token was issued for an attempt that is over: another attempt may be running",
  "worker-removed": "the bearer token was issued for a worker that was removed: register it again",
  "binding-unclear": "whether the bearer token still counts cannot be asked at the moment: try again",
  "certificate-untrusted": "the client certificate is not signed by an authority that this node trusts",
  "certificate-unknown": "the client certificate is genuine, but nothing is granted to its name",
} as const;

export type UnauthenticatedReason = keyof typeof unauthenticatedReasons;

export type Unauthenticated = {
  readonly kind: "unauthenticated";
  readonly reason: UnauthenticatedReason;
  /** Safe to show to any caller. */
  readonly message: string;
  /** Whether the same credentials may be accepted later. */
  readonly retryable: boolean;
};

export type Forbidden = {
  readonly kind: "forbidden";
  readonly reason: "role-missing" | "tenant-foreign";
  readonly message: string;
  /** Any one of these roles is enough. */
  readonly needs: readonly Role[];
};

export type Refusal = Unauthenticated | Forbidden;

const retryable: ReadonlySet<UnauthenticatedReason> = new Set(["keys-unavailable", "verifier-busy", "binding-unclear"]);

// Refusals without facts are made once, so that refusing millions of callers allocates nothing.
const made = Object.fromEntries(
  Object.entries(unauthenticatedReasons).map(([reason, message]) => [
    reason,
    {
      ok: false,
      refusal: {
        kind: "unauthenticated",
        reason,
        message,
        retryable: retryable.has(reason as UnauthenticatedReason),
      },
    },
  ]),
) as Record<UnauthenticatedReason, { readonly ok: false; readonly refusal: Unauthenticated }>;

export const unauthenticated = (
  reason: UnauthenticatedReason,
): { readonly ok: false; readonly refusal: Unauthenticated } => made[reason];
