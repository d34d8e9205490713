/** Secrets under /v1/secrets: they can be set, listed and deleted; their values never come back. */
import { z } from "zod";
import { pageFields, pageOf } from "#http/cursor.ts";
import { endpoint, json, jsonBody, none } from "#http/endpoint.ts";

const Secret = z.object({
  name: z.string(),
  version: z.int().describe("Grows with every change."),
  bytes: z.int(),
  key: z.string().describe("The id of the key that encrypts it."),
  by: z.string().describe("Who set it."),
  changedAt: z.string(),
});

const params = z.object({ name: z.string().min(1).max(512) });

export const setSecret = endpoint({
  method: "PUT",
  path: "/v1/secrets/{name+}",
  action: "secret.write",
  about: "Sets a secret of the tenant, or replaces its value. The value is encrypted, and no call returns it.",
  params,
  body: jsonBody(z.strictObject({ value: z.string().min(1).max(65_536) }), 512 * 1024),
  answer: json(Secret),
  // To set it again has the same effect: no digest of the value is kept.
  idempotency: "handler",
});

export const listSecrets = endpoint({
  method: "GET",
  path: "/v1/secrets",
  action: "secret.list",
  about: "Lists names, sizes and keys of the tenant's secrets, by name; never values.",
  query: z.object({ ...pageFields, prefix: z.string().max(512).optional().describe("Only names that begin with it.") }),
  answer: json(pageOf(Secret)),
});

export const deleteSecret = endpoint({
  method: "DELETE",
  path: "/v1/secrets/{name+}",
  action: "secret.write",
  about: "Deletes a secret of the tenant.",
  params,
  answer: none,
});

export const rotateSecrets = endpoint({
  method: "POST",
  path: "/v1/vault/rotate",
  action: "secret.rotate",
  about: "Wraps every secret of every tenant with the first key of the node that is asked, so that others can go.",
  answer: json(
    z.object({
      key: z.string().describe("The id of the key that encrypts all of them now."),
      rewrapped: z.int(),
      kept: z.int().describe("Secrets that this key encrypted before."),
    }),
  ),
});

export const secretEndpoints = [setSecret, listSecrets, deleteSecret, rotateSecrets] as const;
