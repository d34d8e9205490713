/** Names of artifacts and keys of caches are shown to all who may read the repository: no secret may be in one. */
import { Problem } from "#http/problem.ts";
import type { Vault } from "#vault/vault.ts";
import { Masks } from "#doors/ci/run/printed/mask.ts";
import { scopesOf, secretPrefix } from "./scope.ts";

export type CheckName = (
  of: { readonly tenant: string; readonly repository: string },
  what: string,
  name: string,
) => Promise<void>;

/** Shorter ones may be words that names have anyway. */
const lengthMin = 8;
const pageSize = 500;

export const checkNameWith =
  (vault: Pick<Vault, "list" | "read">): CheckName =>
  async ({ tenant, repository }, what, name) => {
    const masks = new Masks();
    for (const value of await allSecrets(vault, tenant, repository)) if (value.length >= lengthMin) masks.add(value);
    if (masks.mask(name) !== name)
      throw new Problem(400, `${what}: there is a secret in it, and everybody who sees the repository would see it`);
  };

/** Those of environments as well: a job's token does not say which it has. */
async function allSecrets(
  vault: Pick<Vault, "list" | "read">,
  tenant: string,
  repository: string,
): Promise<readonly string[]> {
  const found = new Set<string>();
  for (const scope of scopesOf(repository)) {
    const prefix = secretPrefix(scope);
    let cursor: string | undefined;
    do {
      const page = await vault.list({ tenant, prefix, limit: pageSize, cursor });
      for (const { name } of page.secrets)
        // wider scopes have those of other repositories below them
        if (scope.repository !== undefined || !name.slice(prefix.length).includes("/")) found.add(name);
      ({ cursor } = page);
    } while (cursor !== undefined);
  }
  const values = await Promise.all([...found].map(async (name) => await vault.read(tenant, name)));
  return values.flatMap((value) => (value ? [value.toString("utf8")] : []));
}
