/** The caller, as far as this door has to know. The code that mounts the door authenticates it. */
import { grpcCode, GrpcError } from "#grpc/status.ts";

export type BuildAction =
  | "cache.read"
  | "cache.write"
  | "action-cache.read"
  | "action-cache.write"
  | "build.execute"
  | "work.submit"
  | "work.read"
  | "work.cancel";

export type BuildCaller = {
  /** The owner of the cache. */
  readonly tenant: string;
  /** Recorded as the writer of a result. */
  readonly principal: string;
  may(action: BuildAction): boolean;
};

/** Throws unless the caller may see executions: all of its tenant, or those that it started itself. */
export function needToFollow(caller: BuildCaller): void {
  if (!caller.may("build.execute")) need(caller, "work.read");
}

/** Throws unless the caller has the permission. */
export function need(caller: BuildCaller, action: BuildAction): void {
  if (caller.may(action)) return;
  throw new GrpcError(grpcCode.permissionDenied, `${caller.principal} has no role that allows ${action}`);
}
