/** From the claims of a verified token to what is granted; pure. */
import type { IssuerConfig } from "#edge/identity/identity-config.ts";
import { allTenants, grantProblem, type Grant, type Role } from "#access/principal.ts";

export type Claims = Readonly<Record<string, unknown>>;
export type ClaimRules = Pick<IssuerConfig, "name" | "tenant" | "roles" | "pools" | "labels">;

const valuesMax = 1_000;

/**
 * Undefined if the claims give no name, no tenant or no role, or roles that are not allowed for that tenant. An
 * operator by configuration is of all tenants, whatever tenant the claims name.
 */
export function grantOf(claims: Claims, rules: ClaimRules): Grant | undefined {
  const name = claimAt(claims, rules.name.claim);
  const granted = rolesOf(claims, rules.roles);
  const tenant = granted.includes("operator") ? allTenants : tenantOf(claims, rules.tenant);
  if (typeof name !== "string" || !presentable.test(name) || tenant === undefined) return undefined;
  if (granted.length === 0 || grantProblem({ tenant, roles: granted }) !== undefined) return undefined;
  const { pools, labels } = rules;
  return { name, tenant, roles: granted, ...(pools && { pools }), ...(labels && { labels }) };
}

/** Goes into logs: no control or invisible characters. */
const presentable = /^[^\p{C}]{1,200}$/u;

/** The claim with exactly this name, or else the one that its dots lead to; never an inherited property. */
export function claimAt(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  let at: unknown = claims;
  for (const step of name.split(".")) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, step)) return undefined;
    at = (at as Claims)[step];
  }
  return at;
}

function tenantOf(claims: Claims, rule: ClaimRules["tenant"]): string | undefined {
  if ("fixed" in rule) return rule.fixed;
  const value = claimAt(claims, rule.claim);
  if (typeof value !== "string") return undefined;
  // "*" in a claim is not a tenant: only the configuration can say "all tenants".
  if (rule.map === undefined) return value === allTenants ? undefined : value;
  return Object.hasOwn(rule.map, value) ? rule.map[value] : undefined;
}

function rolesOf(claims: Claims, rule: ClaimRules["roles"]): readonly Role[] {
  const granted = new Set<Role>(rule.always);
  const values = rule.claim === undefined ? [] : words(claimAt(claims, rule.claim));
  for (const value of values)
    if (Object.hasOwn(rule.map, value)) for (const role of rule.map[value] ?? []) granted.add(role);
  return [...granted];
}

/** A list of strings, or one string with spaces, as in `scope`. */
function words(value: unknown): readonly string[] {
  const list: readonly unknown[] = Array.isArray(value) ? value : typeof value === "string" ? value.split(" ") : [];
  return list.slice(0, valuesMax).filter((word) => typeof word === "string");
}
