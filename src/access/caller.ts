/** The caller as handlers see it, for every protocol. */
import { authorize, policy, type Action } from "./policy.ts";
import { allTenants, principal, type Principal } from "./principal.ts";
import type { Refusal } from "./refusal.ts";

/** The tenant of an operator who names none. */
export const tenantDefault = "default";

export type Caller = {
  readonly principal: Principal;
  /** The network address it calls from; "unix" for a Unix socket. */
  readonly address: string;
  /** When its credentials end, by the wall clock. */
  readonly untilMs: number;
  /** Whether the connection is encrypted up to here. */
  readonly isTls: boolean;
};

/** Who calls, or why that is not known. */
export type CallerResult =
  | { readonly ok: true; readonly caller: Caller }
  | { readonly ok: false; readonly refusal: Refusal };

const nobody: Caller = {
  principal: principal({ name: "unknown", tenant: tenantDefault, roles: [] }, "anonymous"),
  address: "",
  untilMs: Infinity,
  isTls: false,
};

/** Stands for a caller that could not be authenticated, in calls that everyone may make; undefined for all others. */
export const unknownCaller = (action: Action): Caller | undefined =>
  authorize(undefined, action).ok ? nobody : undefined;

/** The tenant of a call that names none. */
export const homeTenant = ({ tenant }: Principal): string => (tenant === allTenants ? tenantDefault : tenant);

export type TenantChoice =
  | { readonly ok: true; readonly tenant: string }
  | { readonly ok: false; readonly refusal: Refusal };

/** Whether the caller may do this in the tenant that it named, or in its own if it named none. */
export function chooseTenant({ principal }: Caller, action: Action, named: string | undefined): TenantChoice {
  const tenant = named ?? homeTenant(principal);
  const judged = authorize(principal, action, policy[action].of === "tenant" ? tenant : undefined);
  return judged.ok ? { ok: true, tenant } : judged;
}
