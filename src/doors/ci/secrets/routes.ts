/** Serves the calls about secrets of jobs. */
import { Fault } from "#base/fault.ts";
import { route, type Route } from "#http/route.ts";
import type { Sources } from "#sources/sources.ts";
import type { SecretView, Vault } from "#vault/vault.ts";
import type { SecretBoxes } from "./boxes.ts";
import { environmentSecrets, ownerSecrets, repositorySecrets } from "./endpoints.ts";
import { maskWarnings } from "./maskable.ts";
import { checkedName, type Scope, secretPrefix, valueBytesMax } from "./scope.ts";
import { secretsIn } from "./vault-secrets.ts";

export type SecretPorts = {
  readonly vault: Vault;
  readonly boxes: SecretBoxes;
  readonly sources: Pick<Sources, "get">;
};

type Named = { readonly owner: string; readonly name?: string; readonly environment?: string };

export const secretRoutes = (ports: SecretPorts): readonly Route[] =>
  [ownerSecrets, repositorySecrets, environmentSecrets].flatMap((calls) => routesOf(calls, ports));

/** The three scopes differ in their paths only. */
function routesOf(
  calls: typeof ownerSecrets | typeof repositorySecrets | typeof environmentSecrets,
  { vault, boxes, sources }: SecretPorts,
): readonly Route[] {
  const { publicKey, list, put, remove } = calls;
  const scopeOf = async (tenant: string, { owner, name, environment }: Named): Promise<Scope> => {
    if (name === undefined) return { owner };
    const { name: repository } = await sources.get(tenant, `${owner}/${name}`);
    return { repository, ...(environment !== undefined && { environment }) };
  };
  return [
    route(publicKey, async ({ tenant, params }) => {
      await scopeOf(tenant, params);
      const { keyId, key } = await boxes.publicKey(tenant);
      return { body: { key_id: keyId, key } };
    }),
    route(list, async ({ tenant, params, query: { per_page: size, page } }) => {
      const all = await secretsIn(vault, tenant, await scopeOf(tenant, params));
      const shown = all.slice((page - 1) * size, page * size).map((one) => viewOf(one));
      return { body: { total_count: all.length, secrets: shown } };
    }),
    route(put, async ({ tenant, params, body: { encrypted_value: sealed, key_id: keyId }, caller }) => {
      const scope = await scopeOf(tenant, params);
      const name = checkedName("set a secret", params.secret);
      const value = await boxes.open(tenant, keyId, sealed);
      if (Buffer.byteLength(value) > valueBytesMax)
        throw new Fault("invalid", "set a secret", { name, why: `a value has at most ${valueBytesMax} bytes` });
      await vault.set(tenant, `${secretPrefix(scope)}${name}`, value, caller.principal.name);
      return { status: 201, body: { warnings: [...maskWarnings(value)] } };
    }),
    route(remove, async ({ tenant, params }) => {
      const scope = await scopeOf(tenant, params);
      const found = (await secretsIn(vault, tenant, scope)).filter(
        ({ name }) => name.toUpperCase() === params.secret.toUpperCase(),
      );
      for (const { name } of found) await vault.remove(tenant, `${secretPrefix(scope)}${name}`);
      if (found.length === 0) throw new Fault("not-found", "delete a secret", { name: params.secret });
      return undefined;
    }),
  ];
}

function viewOf({ name, changedAtMs }: SecretView) {
  const at = new Date(changedAtMs).toISOString();
  return { name: name.toUpperCase(), created_at: at, updated_at: at };
}
