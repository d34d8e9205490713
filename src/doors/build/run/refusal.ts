/** Which failures of a run are the action's own, and what its client gets. Pure. */
import type { Digest } from "#base/digest.ts";
import { isFault } from "#base/fault.ts";
import { grpcCode, isGrpcError } from "#grpc/status.ts";
import type { Status } from "#wire/generated/google/rpc/status.ts";
import { OutputParentTaken } from "#worker/stage/stage.ts";
import { MissingInputs } from "#worker/stage/tree.ts";
import { blobSubject } from "#doors/build/names.ts";
import { failed, missingStatus } from "#doors/build/execute/view-failure.ts";

/** A failure that is the action's or its client's to fix; undefined if this machine is to blame. */
export function refusalOf(error: unknown): Status | undefined {
  if (error instanceof MissingInputs) return missing(error.digests);
  if (error instanceof OutputParentTaken) return failed(grpcCode.failedPrecondition, error.message);
  if (isGrpcError(error, grpcCode.invalidArgument)) return failed(error.code, error.message);
  if (isFault(error, "invalid")) return failed(grpcCode.invalidArgument, error.message);
  const lost = isFault(error, "not-found") ? error.facts["digest"] : undefined;
  // REAPI-52: it existed when it was checked, and was gone when it was read.
  return typeof lost === "string" ? missing([lost]) : undefined;
}

const missing = (digests: readonly Digest[]): Status =>
  missingStatus(`${digests.length} blobs that the action needs are not here`, digests.map(blobSubject));
