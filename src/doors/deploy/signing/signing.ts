/**
 * Signed documents. Bytes are signed as they are stored, so that no second serialisation can change what was signed.
 *
 * SG1 A document counts only if a key that the reader trusts, and that is not revoked, signed exactly these bytes for
 *     exactly this purpose: a signed manifest can never pass for a goal.
 */
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, sign, verify } from "node:crypto";
import type { KeyObject } from "node:crypto";
import { z } from "zod";
import { Fault } from "#base/fault.ts";

export const SignedDocument = z.object({
  purpose: z.enum(["manifest", "goal", "certificate", "trust"]),
  body: z.string().describe("The document, as text."),
  key: z.string(),
  signature: z.string().describe("Base64 of the Ed25519 signature."),
});
export type Signed = Readonly<z.output<typeof SignedDocument>>;
export type Purpose = Signed["purpose"];

export type Signer = {
  readonly keyId: string;
  readonly publicPem: string;
  sign(purpose: Purpose, body: string): Signed;
};

const bodyLengthMax = 16 * 1024 * 1024;

export function createKey(): { readonly privatePem: string; readonly publicPem: string } {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  return {
    privatePem: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    publicPem: publicKey.export({ type: "spki", format: "pem" }).toString(),
  };
}

export function signerOf(privatePem: string): Signer {
  const key = createPrivateKey(privatePem);
  if (key.asymmetricKeyType !== "ed25519")
    throw new Fault("invalid", "read signing key", { type: key.asymmetricKeyType, wants: "ed25519" });
  const publicKey = createPublicKey(key);
  const keyId = idOf(publicKey);
  return {
    keyId,
    publicPem: publicKey.export({ type: "spki", format: "pem" }).toString(),
    sign: (purpose, body) => ({
      purpose,
      body,
      key: keyId,
      signature: sign(null, signedBytes(purpose, body), key).toString("base64"),
    }),
  };
}

/** The keys that a reader trusts. Revoked keys stay revoked while the reader is offline. */
export class KeyRing {
  readonly #keys: ReadonlyMap<string, KeyObject>;
  readonly #revoked: ReadonlySet<string>;

  constructor(publicPems: readonly string[], revoked: readonly string[] = []) {
    const keys = publicPems.map((pem) => createPublicKey(pem));
    this.#keys = new Map(keys.map((key) => [idOf(key), key]));
    this.#revoked = new Set(revoked);
  }

  /** The body, or a Fault that says why the document does not count (SG1). */
  open(signed: Signed, purpose: Purpose): string {
    const refuse = (why: string): Fault => new Fault("invalid", `verify ${purpose}`, { key: signed.key, why });
    if (signed.purpose !== purpose) throw refuse(`it was signed as a ${signed.purpose}`);
    if (signed.body.length > bodyLengthMax) throw refuse(`it is longer than ${bodyLengthMax} characters`);
    if (this.#revoked.has(signed.key)) throw refuse("its key is revoked");
    const key = this.#keys.get(signed.key);
    if (!key) throw refuse("its key is not trusted here");
    if (!verify(null, signedBytes(purpose, signed.body), key, Buffer.from(signed.signature, "base64")))
      throw refuse("the signature is wrong");
    return signed.body;
  }
}

export const keyIdOf = (publicPem: string): string => idOf(createPublicKey(publicPem));

const idOf = (key: KeyObject): string =>
  createHash("sha256")
    .update(key.export({ type: "spki", format: "der" }))
    .digest("hex")
    .slice(0, 32);

/** The purpose is part of what is signed, with its length, so that no two pairs give the same bytes. */
const signedBytes = (purpose: Purpose, body: string): Buffer =>
  Buffer.from(`millrace-${purpose}-v1\n${body.length}\n${body}`);
