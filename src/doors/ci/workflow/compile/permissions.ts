/** What a job's token may do, and that a called workflow never gets more than its caller (CI-61, CI-62). */
import { permissionScopes } from "#doors/ci/workflow/schema/permissions.ts";
import { type Node, stringOf } from "#doors/ci/workflow/yaml/node.ts";

export type Level = "none" | "read" | "write";
export type Scope = (typeof permissionScopes)[number];

/** A scope that is not named has no access. */
export type Permissions = { readonly [scope in Scope]?: Level };

/** What a token may do when no file says anything. */
export type PermissionsPolicy = "LimitedRead" | "Write";

/** Scopes that a blanket never opens as far as `write`, or at all. */
const readAtMost: ReadonlySet<string> = new Set(["models", "vulnerability-alerts"]);
const onlyByName: ReadonlySet<string> = new Set([
  "copilot-requests",
  "code-quality",
  "drives",
  "models",
  "vulnerability-alerts",
]);

export function permissionsOf(node: Node | undefined): Permissions | undefined {
  if (!node) return undefined;
  const word = stringOf(node);
  if (word === "read-all") return blanket("read");
  if (word === "write-all") return blanket("write");
  if (node.kind !== "mapping") return {};
  const pairs = node.entries.flatMap(({ key, value }) => {
    const level = stringOf(value);
    const scope = key.kind === "scalar" ? key.value : undefined;
    return level === undefined || level === "none" || typeof scope !== "string" ? [] : [[scope, level] as const];
  });
  return Object.fromEntries(pairs);
}

export function blanket(level: Level): Permissions {
  const pairs = permissionScopes.flatMap((scope) => {
    if (onlyByName.has(scope)) return [];
    return [[scope, level === "write" && readAtMost.has(scope) ? "read" : level] as const];
  });
  return Object.fromEntries(pairs);
}

export function permissionsOfPolicy(policy: PermissionsPolicy): Permissions {
  return policy === "Write" ? blanket("write") : { contents: "read", packages: "read" };
}

const order: readonly Level[] = ["none", "read", "write"];

/** The order in which violations are told. */
const scopesPassedOn: readonly Scope[] = [
  ...(["actions", "artifact-metadata", "attestations", "checks", "contents", "deployments", "discussions"] as const),
  ...(["issues", "packages", "pages", "pull-requests", "repository-projects", "statuses", "security-events"] as const),
  ...(["id-token", "models", "vulnerability-alerts", "code-quality", "copilot-requests", "drives"] as const),
];

export type Excess = { readonly requested: string; readonly allowed: string };

/** Undefined when the requested permissions are within the allowed ones. */
export function excessOver(requested: Permissions, allowed: Permissions): Excess | undefined {
  const scopes = scopesPassedOn.filter((scope) => levelIn(requested, scope) > levelIn(allowed, scope));
  if (scopes.length === 0) return undefined;
  const list = (permissions: Permissions): string =>
    scopes.map((scope) => `${scope}: ${permissions[scope] ?? "none"}`).join(", ");
  return { requested: list(requested), allowed: list(allowed) };
}

const levelIn = (permissions: Permissions, scope: Scope): number => order.indexOf(permissions[scope] ?? "none");
