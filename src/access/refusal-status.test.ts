import { deepEqual, equal } from "node:assert/strict";
import { test } from "node:test";
import { refusalStatus } from "./refusal-status.ts";
import { unauthenticated, unauthenticatedReasons, type UnauthenticatedReason } from "./refusal.ts";

test("a refusal tells in every protocol whether to log in, to give up or to retry", () => {
  const status = (reason: UnauthenticatedReason) => refusalStatus(unauthenticated(reason).refusal);
  deepEqual(status("credentials-missing"), { grpc: 16, http: 401, challenge: "Bearer" });
  deepEqual(status("token-expired"), { grpc: 16, http: 401, challenge: 'Bearer error="invalid_token"' });
  deepEqual(status("keys-unavailable"), { grpc: 14, http: 503, challenge: undefined });
  const forbidden = { kind: "forbidden", reason: "role-missing", message: "", needs: [] } as const;
  equal(refusalStatus(forbidden).http, 403);
  const retryable = Object.keys(unauthenticatedReasons).filter(
    (reason) => status(reason as UnauthenticatedReason).http === 503,
  );
  deepEqual(retryable, ["keys-unavailable", "verifier-busy", "binding-unclear"]);
});
