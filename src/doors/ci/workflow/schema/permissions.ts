/** What may stand below `permissions:` (CI-62). */
import { among, type Definition, mapping, oneOf } from "./definition.ts";

const level = among("read", "write", "none");

/** Scopes that know fewer levels than the others. */
const special: Readonly<Record<string, Definition>> = {
  "copilot-requests": among("write", "none"),
  "id-token": among("write", "none"),
  models: among("read", "none"),
  "vulnerability-alerts": among("read", "none"),
};

export const permissionScopes = [
  "actions",
  "artifact-metadata",
  "attestations",
  "checks",
  "code-quality",
  "contents",
  "copilot-requests",
  "deployments",
  "discussions",
  "drives",
  "id-token",
  "issues",
  "models",
  "packages",
  "pages",
  "pull-requests",
  "repository-projects",
  "security-events",
  "statuses",
  "vulnerability-alerts",
] as const;

export const permissions: Definition = oneOf(
  mapping(Object.fromEntries(permissionScopes.map((scope) => [scope, special[scope] ?? level]))),
  among("read-all"),
  among("write-all"),
);
