/** Maps a refusal to gRPC and HTTP; one mapping for all doors. */
import type { Refusal, UnauthenticatedReason } from "./refusal.ts";

export type RefusalStatus = {
  /** The gRPC status: 16 unauthenticated, 7 permission denied, 14 unavailable. */
  readonly grpc: 7 | 14 | 16;
  readonly http: 401 | 403 | 503;
  /** For HTTP's www-authenticate header, if one is needed. */
  readonly challenge: string | undefined;
};

const forbidden: RefusalStatus = { grpc: 7, http: 403, challenge: undefined };
const comeBack: RefusalStatus = { grpc: 14, http: 503, challenge: undefined };
const whoAreYou: RefusalStatus = { grpc: 16, http: 401, challenge: "Bearer" };
const notWithThat: RefusalStatus = { grpc: 16, http: 401, challenge: 'Bearer error="invalid_token"' };

/** No token was sent, so none is wrong. */
const noneShown: ReadonlySet<UnauthenticatedReason> = new Set([
  "credentials-missing",
  "caller-is-task",
  "caller-unclear",
  "session-unknown",
  "scheme-unsupported",
]);

export function refusalStatus(refusal: Refusal): RefusalStatus {
  if (refusal.kind === "forbidden") return forbidden;
  if (refusal.retryable) return comeBack;
  return noneShown.has(refusal.reason) ? whoAreYou : notWithThat;
}
