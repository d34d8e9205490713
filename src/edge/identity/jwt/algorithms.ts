/**
 * The signature algorithms that can be accepted at all. None with a shared secret: a public key must never be used as
 * one, and a verifier must not be able to sign.
 */
export const jwtAlgorithms = [
  "ES256",
  "ES384",
  "ES512",
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "EdDSA",
  "Ed25519",
] as const;

export type JwtAlgorithm = (typeof jwtAlgorithms)[number];
