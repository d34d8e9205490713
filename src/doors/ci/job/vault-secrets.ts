/**
 * The secrets that a job of a repository may name: `ci/NAME` of the tenant, and `ci/owner/name/NAME` of the repository,
 * which counts more (CI-63). They are read when the job starts, and are nowhere written down.
 */
import type { Vault } from "#vault/vault.ts";

const pageSize = 500;
const secretName = /^[A-Za-z_][A-Za-z0-9_]*$/;

export async function vaultSecrets(
  vault: Pick<Vault, "list" | "read">,
  tenant: string,
  repository: string,
): Promise<Readonly<Record<string, string>>> {
  const secrets: Record<string, string> = {};
  for (const prefix of ["ci/", `ci/${repository}/`])
    for (const name of await namesIn(vault, tenant, prefix)) {
      const value = await vault.read(tenant, `${prefix}${name}`);
      if (value) secrets[name.toUpperCase()] = value.toString("utf8");
    }
  return secrets;
}

async function namesIn(vault: Pick<Vault, "list">, tenant: string, prefix: string): Promise<readonly string[]> {
  const names: string[] = [];
  for (let cursor: string | undefined; ;) {
    const page = await vault.list({ tenant, prefix, limit: pageSize, cursor });
    names.push(...page.secrets.map(({ name }) => name.slice(prefix.length)).filter((name) => secretName.test(name)));
    if (page.cursor === undefined) return names;
    ({ cursor } = page);
  }
}
