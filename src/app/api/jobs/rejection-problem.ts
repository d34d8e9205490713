/** A refused command as a problem. Unlisted kinds are the caller's mistake (400). */
import { Problem } from "#http/problem.ts";
import type { RejectionKind } from "#kernel/model/rejection.ts";
import { isRejected } from "#shard/work/rejected.ts";

const statuses: Partial<Record<RejectionKind, number>> = {
  "job-unknown": 404,
  "stage-unknown": 404,
  "task-unknown": 404,
  "nothing-to-join": 404,
  "job-ended": 409,
  "task-phase": 409,
  "token-stale": 409,
  "generation-stale": 409,
  "key-reused": 422,
  "queue-full": 429,
  "shard-full": 429,
  broken: 500,
};

export function rejectionProblem(error: unknown): Problem | undefined {
  if (!isRejected(error)) return undefined;
  const { rejection } = error;
  const retryMs = "retryAfterMs" in rejection ? rejection.retryAfterMs : undefined;
  return new Problem(statuses[rejection.kind] ?? 400, error.message, {
    cause: error,
    ...(retryMs !== undefined && { headers: { "retry-after": String(Math.ceil(retryMs / 1_000)) } }),
  });
}
