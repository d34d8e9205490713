/** For tests: an issuer with keys of its own. */
import { exportJWK, generateKeyPair, SignJWT, type JWK } from "jose";
import { Identity, type IssuerConfig } from "#edge/identity/identity-config.ts";

export type TestIssuer = {
  readonly name: string;
  readonly jwks: { readonly keys: readonly JWK[] };
  /** A signed token; the given claims and header override those of a good token. */
  sign(claims?: Record<string, unknown>, header?: { alg?: string; kid?: string }): Promise<string>;
  config(more?: Record<string, unknown>): IssuerConfig;
};

export const testNowMs = Date.UTC(2026, 10, 15);

export async function testIssuer(name = "https://login.acme.example", kid = "k1", alg = "ES256"): Promise<TestIssuer> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  const jwks = { keys: [{ ...(await exportJWK(publicKey)), kid, alg }] };
  const nowS = testNowMs / 1_000;
  return {
    name,
    jwks,
    sign: (claims = {}, header = {}) =>
      new SignJWT({
        iss: name,
        aud: "millrace",
        sub: "ada",
        org: "acme",
        groups: ["builders"],
        iat: nowS,
        exp: nowS + 600,
        ...claims,
      })
        .setProtectedHeader({ alg, kid, ...header })
        .sign(privateKey),
    config(more = {}) {
      const issuer = {
        issuer: name,
        audience: ["millrace"],
        keys: { kind: "inline", keys: jwks.keys },
        tenant: { claim: "org" },
        roles: { claim: "groups", map: { builders: ["member"], watchers: ["viewer"] } },
        ...more,
      };
      const [config] = Identity.parse({ issuers: [issuer] }).issuers;
      if (!config) throw new Error("an issuer went in, and none came out");
      return config;
    },
  };
}
