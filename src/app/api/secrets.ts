/** Serves /v1/secrets. */
import { deleteSecret, listSecrets, rotateSecrets, setSecret } from "#api/secrets.ts";
import { Problem } from "#http/problem.ts";
import { route, type Route } from "#http/route.ts";
import type { SecretView } from "#vault/vault.ts";
import type { Vaults } from "#app/compose/services/vault.ts";

export const secretRoutes = ({ secrets, system }: Vaults): readonly Route[] => [
  route(setSecret, async ({ tenant, params: { name }, body: { value }, caller }) => ({
    body: shown(await secrets.set(tenant, name, value, caller.principal.name)),
  })),
  route(listSecrets, async ({ tenant, query: { limit, cursor, prefix } }) => {
    const page = await secrets.list({ tenant, limit, cursor, prefix });
    return { body: { items: page.secrets.map(shown), ...(page.cursor !== undefined && { next: page.cursor }) } };
  }),
  route(deleteSecret, async ({ tenant, params: { name } }) => {
    if (await secrets.remove(tenant, name)) return undefined;
    throw new Problem(404, "name: there is no such secret; list them with GET /v1/secrets");
  }),
  route(rotateSecrets, async () => {
    const ofPeople = await secrets.rotate({ withNewKey: true });
    const ofProgram = await system.rotate({ withNewKey: false });
    const { key } = ofPeople;
    return {
      body: { key, rewrapped: ofPeople.rewrapped + ofProgram.rewrapped, kept: ofPeople.kept + ofProgram.kept },
    };
  }),
];

const shown = ({ name, version, bytes, key, by, changedAtMs }: SecretView) => ({
  name,
  version,
  bytes,
  key,
  by,
  changedAt: new Date(changedAtMs).toISOString(),
});
