/**
 * The signatures that can be accepted at all. None with a shared secret: a public key must never be mistaken for one,
 * and what can verify must not be able to sign.
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
