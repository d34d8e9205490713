/** Pure: why there is no result, with the codes that decide whether a client tries again. */
import { detail, grpcCode } from "#grpc/status.ts";
import type { ExecuteResponse } from "#wire/generated/build/bazel/remote/execution/v2/remote_execution.ts";
import { PreconditionFailure, RetryInfo } from "#wire/generated/google/rpc/error_details.ts";
import type { Status } from "#wire/generated/google/rpc/status.ts";
import type { Ended } from "#doors/build/view.ts";

/** The kernel's reason for a job whose last subscriber left. Stored in logs: it must not change. */
export const abandoned = "nobody waits for it any more";

export const isAbandoned = ({ phase, reason }: Pick<Ended, "phase" | "reason">): boolean =>
  (phase === "CANCELLED" || phase === "CANCELLING") && reason === abandoned;

/** REAPI-57: the beginning of the reason of a job that ended because no worker can run it. */
export const hopeless = "no worker can run it: ";

export const responseOf = (status: Status, message = ""): ExecuteResponse => ({
  cachedResult: false,
  status,
  serverLogs: new Map(),
  message,
});

export const failed = (code: number, message: string, details: Status["details"] = []): Status => ({
  code,
  message,
  details,
});

/** REAPI-51, REAPI-52: clients upload these and try again. */
export const missingStatus = (message: string, subjects: readonly string[]): Status =>
  failed(grpcCode.failedPrecondition, message, [
    detail(PreconditionFailure, {
      violations: subjects.map((subject) => ({ type: "MISSING", subject, description: "" })),
    }),
  ]);

/** REAPI-58: without RetryInfo Bazel gives up. */
export const retryable = (code: number, message: string): Status =>
  failed(code, message, [detail(RetryInfo, { retryDelay: { seconds: 1, nanos: 0 } })]);

/** For a job that ended without a result. */
export function viewFailure({ phase, reason, failure }: Ended): ExecuteResponse {
  if (phase === "CANCELLED" && reason.startsWith(hopeless))
    return responseOf(failed(grpcCode.failedPrecondition, reason));
  if (phase === "CANCELLED") return responseOf(failed(grpcCode.cancelled, reason || "cancelled"));
  const message = failure ? `${failure.reason}: ${failure.message}` : reason;
  // REAPI-57: no worker took it within its queue time.
  if (!failure) return responseOf(failed(grpcCode.failedPrecondition, message));
  if (failure.reason === "timed-out") return responseOf(failed(grpcCode.deadlineExceeded, message));
  if (failure.reason === "user-failure") return responseOf(failed(grpcCode.internal, message));
  if (failure.reason === "out-of-memory") return responseOf(retryable(grpcCode.resourceExhausted, message));
  // REAPI-65: all attempts failed. Not UNAVAILABLE: for that Bazel aborts the whole build.
  return responseOf(retryable(grpcCode.aborted, message));
}
