/** Who calls over gRPC, in the words of this door. */
import { homeTenant } from "#access/caller.ts";
import type { Principal } from "#access/principal.ts";
import { buildCaller, nobody, type BuildCaller } from "#doors/build/caller.ts";

/** Many calls come on one connection, with the same principal. */
export function grpcCallers(): (principal: Principal | undefined) => BuildCaller {
  const callers = new WeakMap<Principal, BuildCaller>();
  return (principal) => {
    if (!principal) return nobody;
    let caller = callers.get(principal);
    if (!caller) callers.set(principal, (caller = buildCaller(principal, homeTenant(principal))));
    return caller;
  };
}
