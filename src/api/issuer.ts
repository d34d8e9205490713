/** The tokens that the cluster issues itself: how others verify them, and new keys. */
import { z } from "zod";
import { endpoint, json, jsonBody } from "#http/endpoint.ts";

const Discovery = z.object({
  issuer: z.string().describe("What tokens name as their issuer; cluster.issuer says which address that is."),
  jwks_uri: z.string(),
  id_token_signing_alg_values_supported: z.array(z.string()),
  response_types_supported: z.array(z.string()),
  subject_types_supported: z.array(z.string()),
});

export const showIssuer = endpoint({
  method: "GET",
  path: "/.well-known/openid-configuration",
  action: "issuer.read",
  about: "Says who issues the cluster's tokens, and where its keys are, as OpenID Connect discovery does.",
  answer: json(Discovery),
});

export const showIssuerKeys = endpoint({
  method: "GET",
  path: "/.well-known/jwks",
  action: "issuer.read",
  about: "The public keys that verify the cluster's tokens, as a JWK Set: the next one is in it before it signs.",
  answer: json(z.object({ keys: z.array(z.record(z.string(), z.unknown())) })),
});

export const rotateIssuer = endpoint({
  method: "POST",
  path: "/v1/issuer/rotate",
  action: "issuer.rotate",
  about: "Makes a new key that signs at once. Old ones verify until their tokens have ended, unless they are revoked.",
  body: jsonBody(
    z.strictObject({
      revoke: z.boolean().default(false).describe("Trust no other key any more: all tokens so far are void."),
    }),
    1_024,
  ),
  answer: json(z.object({ key: z.string().describe("The id of the new key.") })),
});

export const issuerEndpoints = [showIssuer, showIssuerKeys, rotateIssuer] as const;
