/** Who calls, in the words of this door: from the principal that the edge authenticated and the policy table. */
import { homeTenant } from "#access/caller.ts";
import { authorize, type Action } from "#access/policy.ts";
import type { Principal } from "#access/principal.ts";
import { refusalStatus } from "#access/refusal-status.ts";
import type { Refusal } from "#access/refusal.ts";
import type { Identify } from "#http/serve.ts";
import type { BuildCaller } from "#doors/build/caller.ts";
import type { CallRefusal, HttpCaller, Need } from "#doors/build/http/caller.ts";

export function asCaller(principal: Principal): BuildCaller {
  const tenant = homeTenant(principal);
  return { tenant, principal: principal.name, may: (action) => authorize(principal, action, tenant).ok };
}

const unknown: BuildCaller = { tenant: "", principal: "nobody", may: () => false };

/** Many calls come on one connection, with the same principal. */
export function grpcCallers(): (principal: Principal | undefined) => BuildCaller {
  const callers = new WeakMap<Principal, BuildCaller>();
  return (principal) => {
    if (!principal) return unknown;
    let caller = callers.get(principal);
    if (!caller) callers.set(principal, (caller = asCaller(principal)));
    return caller;
  };
}

const actionOf = {
  "blobs.read": "cache.read",
  "blobs.write": "cache.write",
  "names.read": "action-cache.read",
  "names.write": "action-cache.write",
  "store.look": "cluster.read",
  "store.tend": "cluster.admin",
} as const satisfies Record<Need, Action>;

function asHttpCaller(principal: Principal): HttpCaller {
  const tenant = homeTenant(principal);
  return {
    tenant,
    principal: principal.name,
    refusal(need) {
      const judged = authorize(principal, actionOf[need], tenant);
      return judged.ok ? undefined : asCallRefusal(judged.refusal);
    },
  };
}

type Known<C> = { readonly caller: C } | { readonly refused: CallRefusal };

/** The edge says with each request how to find out who sent it; the protocols ask by the request alone. */
export class HttpCallers {
  readonly #identify = new WeakMap<Request, Identify>();

  from(request: Request, identify: Identify): Request {
    this.#identify.set(request, identify);
    return request;
  }

  /** Of a cache's protocol. */
  readonly http = (request: Request): Promise<Known<HttpCaller>> => this.#known(request, asHttpCaller);
  /** Of builds and of the questions why. */
  readonly build = (request: Request): Promise<Known<BuildCaller>> => this.#known(request, asCaller);

  async #known<C>(request: Request, as: (principal: Principal) => C): Promise<Known<C>> {
    const identify = this.#identify.get(request);
    if (!identify) return { refused: { status: 401, message: "it is not known where this came from" } };
    const known = await identify(request);
    return known.ok ? { caller: as(known.caller.principal) } : { refused: asCallRefusal(known.refusal) };
  }
}

function asCallRefusal(refusal: Refusal): CallRefusal {
  const { http, challenge } = refusalStatus(refusal);
  const challenges = challenge === undefined ? undefined : `${challenge}, Basic realm="millrace"`;
  return {
    status: http,
    message: refusal.message,
    ...(challenges !== undefined && { headers: { "www-authenticate": challenges } }),
  };
}
