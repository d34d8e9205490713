/** Serves the issuer's keys and its discovery document. */
import { rotateIssuer, showIssuer, showIssuerKeys } from "#api/issuer.ts";
import { route, type Route } from "#http/route.ts";
import type { Issuer } from "#issuer/issuer.ts";
import { algorithm } from "#issuer/keys.ts";

/** Copies may be kept for this long: a key is published for longer before it signs. */
const cached = { "cache-control": "public, max-age=3600" } as const;

export const issuerRoutes = (issuer: Issuer): readonly Route[] => [
  route(showIssuer, ({ url }) => ({
    headers: cached,
    body: {
      issuer: issuer.name,
      jwks_uri: `${issuer.name.startsWith("http") ? issuer.name.replace(/\/$/, "") : url.origin}/.well-known/jwks`,
      id_token_signing_alg_values_supported: [algorithm],
      response_types_supported: ["id_token"],
      subject_types_supported: ["public"],
    },
  })),
  route(showIssuerKeys, async () => {
    const { trusted } = await issuer.keys.ring();
    return { headers: cached, body: { keys: trusted.map(({ jwk }) => ({ ...jwk })) } };
  }),
  route(rotateIssuer, async ({ body: { revoke } }) => ({
    body: { key: await issuer.keys.replace({ revokes: revoke }) },
  })),
];
