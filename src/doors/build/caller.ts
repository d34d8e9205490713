/** The caller, as far as this door has to know: the same for gRPC, for /v1 and for build tools over HTTP. */
import { authorize } from "#access/policy.ts";
import type { Principal } from "#access/principal.ts";
import type { Refusal } from "#access/refusal.ts";
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
  /** Why it may not; undefined when it may. */
  refusal(action: BuildAction): Refusal | undefined;
};

/** A principal that acts in a tenant: its own, or the one that an operator named. */
export const buildCaller = (principal: Principal, tenant: string): BuildCaller => ({
  tenant,
  principal: principal.name,
  may: (action) => authorize(principal, action, tenant).ok,
  refusal(action) {
    const judged = authorize(principal, action, tenant);
    return judged.ok ? undefined : judged.refusal;
  },
});

/** A caller that could not be authenticated. */
export const nobody: BuildCaller = {
  tenant: "",
  principal: "nobody",
  may: () => false,
  refusal(action) {
    const judged = authorize(undefined, action);
    return judged.ok ? undefined : judged.refusal;
  },
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
