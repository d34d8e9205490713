/** Who calls, as far as this door has to know: the same for gRPC, for /v1 and for build tools over HTTP. */
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
  /** Whose cache it is. */
  readonly tenant: string;
  /** For the record of who wrote a result. */
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

/** Somebody who could not be authenticated. */
export const nobody: BuildCaller = {
  tenant: "",
  principal: "nobody",
  may: () => false,
  refusal(action) {
    const judged = authorize(undefined, action);
    return judged.ok ? undefined : judged.refusal;
  },
};

/** Throws unless the caller may look at what was run here: at all of its tenant's, or at what it began itself. */
export function needToFollow(caller: BuildCaller): void {
  if (!caller.may("build.execute")) need(caller, "work.read");
}

/** Throws unless the caller may. */
export function need(caller: BuildCaller, action: BuildAction): void {
  if (caller.may(action)) return;
  throw new GrpcError(grpcCode.permissionDenied, `${caller.principal} has no role that allows ${action}`);
}
