/** The caller's identity. An address proves nothing: a caller without credentials has no roles and no tenant. */
import { assert } from "#base/assert.ts";

export const roles = [
  "operator",
  "member",
  "builder",
  "executor",
  "cache-reader",
  "cache-writer",
  "action-cache-writer",
  "viewer",
  "agent",
  "releaser",
  "approver",
  "runner",
  "task",
] as const;

export type Role = (typeof roles)[number];

export const roleMeanings = {
  operator: "runs the cluster: everything, in all tenants",
  member: "submits work and reads it; uploads inputs and downloads outputs",
  builder: "runs actions through the build door and follows its own; reads cached results and blobs, uploads blobs",
  executor: "claims work and brings back results",
  "cache-reader": "reads cached results and blobs",
  "cache-writer": "also uploads blobs",
  "action-cache-writer": "also says what an action's result is: others will trust it",
  agent: "looks after the services of a machine: reads goals and releases, and reports",
  releaser: "releases services, which runs their builds on a node, rolls them back, halts them, and sees their state",
  approver: "approves and rejects waves of releases, in its own name, and sees their state",
  runner: "an executor of one tenant: claims its work on a machine of its own, and brings back results",
  viewer: "looks at work and metrics, and changes nothing",
  task: "what runs as a task: reads and writes files of its own job and reports steps, while its attempt lasts",
} as const satisfies Record<Role, string>;

/** Roles that a configuration may grant: the cluster itself issues a task's token, for one attempt. */
export const grantedRoles = roles.filter((role): role is Exclude<Role, "task"> => role !== "task");

/**
 * How the caller proved its identity. `owner`: the token in the data folder. `session`: a browser that was signed in.
 * `issued`: a token that this cluster issued itself.
 */
export type Proof = "anonymous" | "token" | "owner" | "session" | "jwt" | "certificate" | "issued";

/** One attempt at a task, by its claim. */
export type ClaimOf = {
  readonly tenant: string;
  readonly job: string;
  readonly task: string;
  readonly attempt: number;
  /** The token of the claim. */
  readonly token: number;
};

/** Stands for every tenant. No tenant can have this name. */
export const allTenants = "*";

export const tenantPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

export type Principal = {
  /** For logs and for the record of who submitted; not a secret. */
  readonly name: string;
  /** The tenant it belongs to, or `allTenants`. */
  readonly tenant: string;
  readonly roles: ReadonlySet<Role>;
  readonly proof: Proof;
  /** The pools whose tasks it may run; left out: the default pool. */
  readonly pools?: readonly string[];
  /** The labels that it may offer as an executor; left out: any label that is not reserved. */
  readonly labels?: readonly string[];
  /** The worker that it is, if it registered itself. */
  readonly worker?: string;
  /** The attempt that it is, and for which alone it may speak; left out: it is no task. */
  readonly claim?: ClaimOf;
};

/** What an identity is granted; configuration and token claims are turned into this. */
export type Grant = {
  readonly name: string;
  readonly tenant: string;
  readonly roles: readonly Role[];
  readonly pools?: readonly string[] | undefined;
  readonly labels?: readonly string[] | undefined;
};

export function principal(grant: Grant, proof: Proof): Principal {
  const problem = grantProblem(grant);
  assert(problem === undefined, `a grant is checked before it becomes a principal: ${problem}`);
  const { name, tenant, pools, labels } = grant;
  return { name, tenant, roles: new Set(grant.roles), proof, ...(pools && { pools }), ...(labels && { labels }) };
}

/**
 * Why these roles cannot be granted for this tenant, or undefined. Operators always belong to all tenants. Executors
 * may belong to all tenants, and then read and write what their tasks need; a member or viewer of all tenants would be
 * an operator by another name.
 */
export function grantProblem({ tenant, roles: granted }: Pick<Grant, "tenant" | "roles">): string | undefined {
  if (tenant !== allTenants)
    if (!tenantPattern.test(tenant)) return "a tenant's name has letters, digits, dots and dashes only";
    else return granted.includes("operator") ? `an operator is one of all tenants: write "${allTenants}"` : undefined;
  if (granted.includes("operator")) return undefined;
  if (!granted.includes("executor")) return "only operators and executors can be of all tenants";
  const personal = granted.find((role) => role === "member" || role === "viewer");
  return personal === undefined ? undefined : `a ${personal} belongs to one tenant`;
}

/** What local callers get without credentials: what build tools need, and nothing else. */
export const anonymousGrant: { tenant: string; roles: ("builder" | "action-cache-writer")[] } = {
  tenant: "default",
  roles: ["builder", "action-cache-writer"],
};
