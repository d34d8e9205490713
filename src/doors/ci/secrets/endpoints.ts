/**
 * Secrets as GitHub's API has them, for `gh secret set` and its kin: of an owner, a repository and an environment. A
 * value comes in a sealed box, and never goes out.
 */
import { z } from "zod";
import { endpoint, type Fields, json, jsonBody, none } from "#http/endpoint.ts";
import { valueBytesMax } from "./scope.ts";

const Name = z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/);
const owner = Name.describe("The owner of repositories: the part of their names before the slash.");
const name = Name.describe("The repository's name behind the slash.");
const environment = z.string().min(1).max(100).describe("An environment of the repository.");
const secret = z.string().min(1).max(200).describe("The secret's name.");

const Secret = z.object({ name: z.string(), created_at: z.iso.datetime(), updated_at: z.iso.datetime() });
const paging = z.object({
  per_page: z.coerce.number().int().min(1).max(1_000).default(30),
  page: z.coerce.number().int().min(1).max(1_000).default(1),
});
const Sealed = z.object({
  encrypted_value: z
    .base64()
    .max(2 * valueBytesMax)
    .describe("A sealed box of libsodium."),
  key_id: z.string().max(50),
});

/** The same four calls for each scope. */
const callsAt = <P extends Fields, S extends Fields>(
  path: string,
  about: string,
  { params, named }: { readonly params: P; readonly named: S },
) => ({
  publicKey: endpoint({
    method: "GET",
    path: `${path}/public-key`,
    action: "secret.list",
    about: `The key to seal secrets of ${about} with; another one each month.`,
    params,
    answer: json(z.object({ key_id: z.string(), key: z.string() })),
  }),
  list: endpoint({
    method: "GET",
    path,
    action: "secret.list",
    about: `Lists the names of secrets of ${about}; never values.`,
    params,
    query: paging,
    answer: json(z.object({ total_count: z.int(), secrets: z.array(Secret) })),
  }),
  put: endpoint({
    method: "PUT",
    path: `${path}/{secret}`,
    action: "secret.write",
    about: `Sets a secret of ${about}; the answer warns of what logs will not mask.`,
    params: named,
    body: jsonBody(Sealed, 256 * 1024),
    answer: json(z.object({ warnings: z.array(z.string()) }), 201),
    idempotency: "handler",
  }),
  remove: endpoint({
    method: "DELETE",
    path: `${path}/{secret}`,
    action: "secret.write",
    about: `Deletes a secret of ${about}.`,
    params: named,
    answer: none,
  }),
});

export const ownerSecrets = callsAt("/api/v3/orgs/{owner}/actions/secrets", "all repositories of an owner", {
  params: z.object({ owner }),
  named: z.object({ owner, secret }),
});
export const repositorySecrets = callsAt("/api/v3/repos/{owner}/{name}/actions/secrets", "a repository", {
  params: z.object({ owner, name }),
  named: z.object({ owner, name, secret }),
});
export const environmentSecrets = callsAt(
  "/api/v3/repos/{owner}/{name}/environments/{environment}/secrets",
  "an environment",
  { params: z.object({ owner, name, environment }), named: z.object({ owner, name, environment, secret }) },
);

export const secretEndpoints = [ownerSecrets, repositorySecrets, environmentSecrets].flatMap((calls) =>
  Object.values(calls),
);
