/** How calls are refused here: the codes decide whether a client tries again, so each is chosen in one place. */
import { isFault } from "#base/fault.ts";
import { detail, errorOf, grpcCode, GrpcError } from "#grpc/status.ts";
import { PreconditionFailure, RetryInfo } from "#wire/generated/google/rpc/error_details.ts";

export const invalid = (message: string): GrpcError => new GrpcError(grpcCode.invalidArgument, message);
export const notFound = (message: string): GrpcError => new GrpcError(grpcCode.notFound, message);
export const outOfRange = (message: string): GrpcError => new GrpcError(grpcCode.outOfRange, message);

/** Clients upload these and try again, if every violation is of this type. */
export function missingBlobs(message: string, subjects: readonly string[]): GrpcError {
  const violations = subjects.map((subject) => ({ type: "MISSING", subject, description: "" }));
  return new GrpcError(grpcCode.failedPrecondition, message, [detail(PreconditionFailure, { violations })]);
}

/** A store's failure as clients of this door understand it. Temporary ones say when to try again. */
export function refusalOf(thrown: unknown): GrpcError {
  const error = errorOf(thrown);
  if (isFault(thrown, "exhausted")) {
    const retryAfterMs = thrown.facts["retryAfterMs"];
    // A limit that waiting does not help with has no retry time.
    if (thrown.facts["limit"] !== undefined && retryAfterMs === undefined) return error;
    return later(error, typeof retryAfterMs === "number" ? Math.ceil(retryAfterMs / 1_000) : 5);
  }
  if (isFault(thrown, "unavailable")) return later(error, 1);
  // Another connection has taken the upload over: starting again is right, giving up is not.
  if (isFault(thrown, "stale")) return new GrpcError(grpcCode.aborted, error.message, [], [], thrown);
  return error;
}

const later = ({ code, message, cause }: GrpcError, seconds: number): GrpcError =>
  new GrpcError(code, message, [detail(RetryInfo, { retryDelay: { seconds, nanos: 0 } })], [], cause);
