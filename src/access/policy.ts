/** What callers may do: one table, and one function that reads it. Nothing else decides who may do what. */
import { allTenants, type Principal, type Role } from "./principal.ts";
import { unauthenticated, type Refusal } from "./refusal.ts";

/** `everyone` needs no credentials; `known` is any authenticated principal, whatever its roles. */
type Rule = {
  readonly of: "tenant" | "cluster";
  readonly for: "everyone" | "known" | readonly Role[];
};

export const policy = {
  health: { of: "cluster", for: "everyone" },
  "service.describe": { of: "cluster", for: "known" },
  "cluster.map": { of: "cluster", for: ["operator", "member", "executor", "runner", "viewer"] },
  "cluster.read": { of: "cluster", for: ["operator", "viewer"] },
  "cluster.admin": { of: "cluster", for: ["operator"] },
  "metrics.read": { of: "cluster", for: ["operator", "viewer"] },
  // Public keys, which others verify tokens with.
  "issuer.read": { of: "cluster", for: "everyone" },
  "issuer.rotate": { of: "cluster", for: ["operator"] },
  // Creates a link that signs a browser in as its caller.
  "login.link": { of: "cluster", for: ["operator", "member", "viewer"] },

  "work.submit": { of: "tenant", for: ["operator", "member"] },
  "work.read": { of: "tenant", for: ["operator", "member", "viewer"] },
  "work.signal": { of: "tenant", for: ["operator", "member"] },
  "work.cancel": { of: "tenant", for: ["operator", "member"] },
  "work.execute": { of: "tenant", for: ["operator", "executor", "runner"] },
  "work.admin": { of: "tenant", for: ["operator"] },

  // By the token of its claim, for its own job alone: bytes, and steps and checkpoints of its attempt.
  "task.artifacts": { of: "tenant", for: ["task"] },
  "task.report": { of: "tenant", for: ["task"] },
  "task.checkpoint": { of: "tenant", for: ["task"] },

  // Workers elsewhere: what registers them, and who they are. A token proves who registers.
  "worker.register": { of: "cluster", for: "everyone" },
  "worker.self": { of: "tenant", for: ["executor"] },
  "worker.admin": { of: "tenant", for: ["operator"] },
  "worker.read": { of: "tenant", for: ["operator", "viewer"] },
  // Pools that all share, and the tenant's own.
  "pool.read": { of: "tenant", for: ["operator", "member", "viewer"] },

  // Values never come back: who may set one may replace and delete it, and work of the tenant uses it.
  "secret.write": { of: "tenant", for: ["operator", "member"] },
  "secret.list": { of: "tenant", for: ["operator", "member", "viewer"] },
  "secret.rotate": { of: "cluster", for: ["operator"] },

  // What a schedule starts is judged when it is made, as if its maker submitted it.
  "schedule.write": { of: "tenant", for: ["operator", "member"] },
  "schedule.read": { of: "tenant", for: ["operator", "member", "viewer"] },

  // What a task does outside, under its own claim; a person decides what no task can know.
  "effect.write": { of: "tenant", for: ["task"] },
  "effect.read": { of: "tenant", for: ["operator", "member", "viewer", "task"] },
  "effect.decide": { of: "tenant", for: ["operator", "member"] },
  // A webhook makes nodes call an address, and tells it of the tenant's work.
  "webhook.write": { of: "tenant", for: ["operator", "member"] },
  "webhook.read": { of: "tenant", for: ["operator", "member", "viewer"] },

  "audit.read": { of: "tenant", for: ["operator", "viewer"] },

  // Execute, and wait for or cancel one's own actions. Separate from work.submit, which accepts any kind of work.
  "build.execute": { of: "tenant", for: ["operator", "member", "builder"] },

  // Goals, manifests and segments for machines, and their reports.
  "deploy.attach": { of: "tenant", for: ["operator", "agent"] },
  "deploy.read": { of: "tenant", for: ["operator", "member", "viewer", "releaser", "approver"] },
  "deploy.release": { of: "tenant", for: ["operator", "releaser"] },
  // The keys that all tenants' machines trust.
  "deploy.keys": { of: "cluster", for: ["operator"] },
  // Counted by person: each approves in its own name.
  "deploy.approve": { of: "tenant", for: ["operator", "approver"] },

  "ci.read": { of: "tenant", for: ["operator", "member", "viewer"] },
  "ci.run": { of: "tenant", for: ["operator", "member"] },
  // Lets jobs into environments, and runs of strangers begin: each person in its own name.
  "ci.approve": { of: "tenant", for: ["operator", "member", "approver"] },
  // Says where nodes fetch from, and which paths of theirs they read.
  "ci.admin": { of: "tenant", for: ["operator"] },

  // Pushes to repositories that nodes keep; a push starts runs.
  "sources.push": { of: "tenant", for: ["operator", "member"] },

  "cache.read": {
    of: "tenant",
    for: ["operator", "member", "builder", "executor", "runner", "cache-reader", "cache-writer", "action-cache-writer"],
  },
  "cache.write": {
    of: "tenant",
    for: ["operator", "member", "builder", "executor", "runner", "cache-writer", "action-cache-writer"],
  },
  "action-cache.read": {
    of: "tenant",
    for: ["operator", "member", "builder", "executor", "runner", "cache-reader", "cache-writer", "action-cache-writer"],
  },
  // Writers here decide what other builds contain. Executors are not included: the engine records their results under
  // their claim's token.
  "action-cache.write": { of: "tenant", for: ["operator", "action-cache-writer"] },
} as const satisfies Record<string, Rule>;

export type Action = keyof typeof policy;

export const actions = Object.keys(policy) as readonly Action[];

export type Authorized = { readonly ok: true } | { readonly ok: false; readonly refusal: Refusal };

const allowed: Authorized = { ok: true };

/**
 * Whether `who` (undefined: not authenticated) may do this in `tenant`. Left out, `tenant` means all tenants, which
 * only a principal of all tenants may ask for. Actions of the cluster have no tenant.
 */
export function authorize(who: Principal | undefined, action: Action, tenant: string = allTenants): Authorized {
  const rule: Rule = policy[action];
  if (rule.for === "everyone") return allowed;
  if (who === undefined) return unauthenticated("credentials-missing");
  if (rule.for === "known") return allowed;
  if (!holdsOneOf(who, rule.for)) return roleMissing(who, action, rule.for);
  if (rule.of === "cluster" || who.tenant === tenant || who.tenant === allTenants) return allowed;
  return tenantForeign(who, action, tenant, rule.for);
}

function holdsOneOf(who: Principal, needs: readonly Role[]): boolean {
  for (const role of needs) if (who.roles.has(role)) return true;
  return false;
}

const roleMissing = (who: Principal, action: Action, needs: readonly Role[]): Authorized => ({
  ok: false,
  refusal: {
    kind: "forbidden",
    reason: "role-missing",
    message: `${action} needs one of the roles ${needs.join(", ")}; ${describe(who)}`,
    needs,
  },
});

// The same text whether or not the other tenant exists.
const tenantForeign = (who: Principal, action: Action, tenant: string, needs: readonly Role[]): Authorized => ({
  ok: false,
  refusal: {
    kind: "forbidden",
    reason: "tenant-foreign",
    message:
      tenant === allTenants
        ? `${action} in all tenants needs an operator; name one tenant: ${describe(who)}`
        : `${action} in another tenant needs an operator; ${describe(who)}`,
    needs: needs.filter((role) => role === "operator"),
  },
});

function describe({ name, tenant, roles, proof }: Principal): string {
  const has = `${name} of ${tenant === allTenants ? "all tenants" : tenant} has ${[...roles].join(", ") || "none"}`;
  return proof === "anonymous" ? `${has}; call with a token for more` : has;
}
