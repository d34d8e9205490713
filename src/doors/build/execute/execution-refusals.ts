/** Maps a shard's rejections to what clients of this door understand. */
import { detail, grpcCode, GrpcError } from "#grpc/status.ts";
import { isRejected } from "#shard/work/rejected.ts";
import { RetryInfo } from "#wire/generated/google/rpc/error_details.ts";
import { MissingInputs } from "#worker/stage/tree.ts";
import { blobSubject } from "#doors/build/names.ts";
import { invalid, missingBlobs, notFound } from "#doors/build/refusals.ts";

export function refusalOfWork(thrown: unknown): unknown {
  if (!isRejected(thrown)) return thrown;
  const { rejection, message } = thrown;
  switch (rejection.kind) {
    case "queue-full":
    case "shard-full":
      return later(message, rejection.retryAfterMs);
    case "job-unknown":
      return notFound("there is no such operation");
    case "invalid":
    case "limit":
      return invalid(message);
    default:
      return new GrpcError(grpcCode.failedPrecondition, message, [], [], thrown);
  }
}

const later = (message: string, afterMs: number): GrpcError => {
  const retryDelay = { seconds: Math.floor(afterMs / 1_000), nanos: (afterMs % 1_000) * 1e6 };
  return new GrpcError(grpcCode.resourceExhausted, message, [detail(RetryInfo, { retryDelay })]);
};

/** REAPI-51: everything that is missing, in the form by which clients upload. */
export const refusalOfInputs = (thrown: unknown): unknown =>
  thrown instanceof MissingInputs
    ? missingBlobs(`${thrown.digests.length} blobs that the action needs are not here`, thrown.digests.map(blobSubject))
    : thrown;
