/**
 * Secrets of jobs, in the vault: which a job may name, and who sets them. They are read when a job starts, those of an
 * environment after it was let in, and are nowhere written down.
 */
import type { SecretView, Vault } from "#vault/vault.ts";
import { isName, type Scope, scopesOf, secretPrefix } from "./scope.ts";

const pageSize = 500;

export type JobPlace = { readonly repository: string; readonly environment?: string | undefined };

export async function vaultSecrets(
  vault: Pick<Vault, "list" | "read">,
  tenant: string,
  { repository, environment }: JobPlace,
): Promise<Readonly<Record<string, string>>> {
  const found = new Map<string, string>(); // by the name, where in the vault
  for (const scope of scopesOf(repository, environment))
    for (const { name } of await secretsIn(vault, tenant, scope))
      found.set(name.toUpperCase(), `${secretPrefix(scope)}${name}`);
  const secrets: Record<string, string> = {};
  for (const [name, at] of found) {
    const value = await vault.read(tenant, at);
    if (value) secrets[name] = value.toString("utf8");
  }
  return secrets;
}

/** Of this scope alone, with the name that jobs know them by. */
export async function secretsIn(
  vault: Pick<Vault, "list">,
  tenant: string,
  scope: Scope,
): Promise<readonly SecretView[]> {
  const prefix = secretPrefix(scope);
  const secrets: SecretView[] = [];
  for (let cursor: string | undefined; ;) {
    const page = await vault.list({ tenant, prefix, limit: pageSize, cursor });
    for (const secret of page.secrets) {
      const name = secret.name.slice(prefix.length); // those of narrower scopes have a slash here
      if (isName(name)) secrets.push({ ...secret, name });
    }
    if (page.cursor === undefined) return secrets;
    ({ cursor } = page);
  }
}
