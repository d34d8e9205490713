/** Maps gRPC statuses of a REAPI server to fault codes. */
import { Fault, isFault, type FaultCode } from "#base/fault.ts";
import { GrpcError, grpcCode } from "#grpc/status.ts";

/** Statuses that may pass are "unavailable". An unlisted status is a bug on one side. */
const codes: ReadonlyMap<number, FaultCode> = new Map([
  [grpcCode.cancelled, "unavailable"],
  [grpcCode.unknown, "unavailable"],
  [grpcCode.deadlineExceeded, "unavailable"],
  [grpcCode.aborted, "unavailable"],
  [grpcCode.internal, "unavailable"],
  [grpcCode.unavailable, "unavailable"],
  [grpcCode.notFound, "not-found"],
  [grpcCode.invalidArgument, "invalid"],
  [grpcCode.outOfRange, "invalid"],
  [grpcCode.resourceExhausted, "exhausted"],
  [grpcCode.dataLoss, "corrupt"],
]);

export function asFault(error: unknown, doing: string): Fault {
  if (isFault(error)) return error;
  if (!(error instanceof GrpcError)) throw error;
  return statusFault(error.code, error.message, doing, error);
}

export const statusFault = (code: number, message: string, doing: string, cause?: unknown): Fault =>
  new Fault(codes.get(code) ?? "internal", doing, { status: code, why: message.slice(0, 200) }, cause);
