/** Secrets of an owner, a repository or an environment; those of all repositories are `millrace secret set ci/NAME`. */
import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { callEndpoint, type Fetch } from "#http/client.ts";
import { command, type ExitCode, serverFlags, type World } from "#door/command.ts";
import { environmentSecrets, ownerSecrets, repositorySecrets } from "#doors/ci/secrets/endpoints.ts";
import { fetchOf, ownerAndName, repositoryHere, usage } from "./node-call.ts";
import { scopeFlags } from "./settings.ts";

const pageSize = 1_000;

export const ciSecret = command({
  name: "ci secret",
  about: "Set, list or delete secrets of a repository, or with --owner or --environment; a value is read from stdin.",
  words: "<set NAME|list|delete NAME>",
  positionalsMax: 2,
  takesRest: false,
  flags: {
    ...serverFlags,
    ...scopeFlags,
    file: { type: "string", value: "FILE", about: "read the value from this file instead" },
  },
  examples: ["millrace ci secret set TOKEN --environment production", "millrace ci secret list --owner mill"],
  async run({ positionals: [verb, name], values }, world) {
    const { calls, params } = await placeOf(values);
    const fetch = await fetchOf(values, world);
    if (verb === "list") {
      const { secrets } = await callEndpoint(fetch, calls.list, { params, query: { per_page: pageSize } });
      for (const one of secrets) world.out(values.json ? JSON.stringify(one) : `${one.name}  ${one.updated_at}`);
      if (secrets.length === 0 && !values.json) world.note("there are no secrets of this place");
      return 0;
    }
    if (name === undefined) return usage(world, "ci secret set TOKEN < token.txt");
    const named = { ...params, secret: name };
    if (verb === "set") return await set(fetch, { calls, params, named, file: values.file }, world);
    if (verb !== "delete") return usage(world, "ci secret set TOKEN < token.txt");
    await callEndpoint(fetch, calls.remove, { params: named });
    return 0;
  },
});

type Place = {
  /** All three sets of calls are alike; `params` are those of the chosen one. */
  readonly calls: typeof ownerSecrets;
  readonly params: { readonly owner: string };
};

async function placeOf(values: {
  readonly owner?: string | undefined;
  readonly repository?: string | undefined;
  readonly environment?: string | undefined;
}): Promise<Place> {
  if (values.owner !== undefined) return { calls: ownerSecrets, params: { owner: values.owner } };
  const repository = ownerAndName(await repositoryHere(values.repository));
  const { environment } = values;
  return environment === undefined
    ? { calls: repositorySecrets as unknown as typeof ownerSecrets, params: repository }
    : {
        calls: environmentSecrets as unknown as typeof ownerSecrets,
        params: { ...repository, environment } as { readonly owner: string },
      };
}

/** The value leaves this process sealed. */
async function set(
  fetch: Fetch,
  {
    calls,
    params,
    named,
    file,
  }: Place & {
    readonly named: { readonly owner: string; readonly secret: string };
    readonly file: string | undefined;
  },
  world: World,
): Promise<ExitCode> {
  const given = file === undefined ? await text(process.stdin) : await readFile(file, "utf8");
  const value = given.replace(/\r?\n$/, "");
  if (value === "") {
    world.note("ci secret set: the value is empty; write it to stdin, or name a file with --file");
    return 2;
  }
  const { key, key_id: keyId } = await callEndpoint(fetch, calls.publicKey, { params });
  const { sodium } = await import("#doors/ci/secrets/boxes.ts");
  const box = (await sodium()).crypto_box_seal(value, Buffer.from(key, "base64"));
  const body = { encrypted_value: Buffer.from(box).toString("base64"), key_id: keyId };
  const { warnings } = await callEndpoint(fetch, calls.put, { params: named, body });
  for (const warning of warnings) world.note(`${named.secret}: ${warning}`);
  return 0;
}
