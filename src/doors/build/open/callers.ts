/** Who calls over gRPC, in the words of this door. */
import { homeTenant, type Caller } from "#access/caller.ts";
import { buildCaller, nobody, type BuildCaller } from "#doors/build/caller.ts";

/** Made once for each caller: many calls come on one connection. */
export function grpcCallers(): (caller: Caller | undefined) => BuildCaller {
  const known = new WeakMap<Caller, BuildCaller>();
  return (caller) => {
    if (!caller) return nobody;
    let found = known.get(caller);
    if (!found) known.set(caller, (found = buildCaller(caller.principal, homeTenant(caller.principal))));
    return found;
  };
}
