/**
 * AES-GCM around a packet or a stream's message: a version byte, 12 bytes of nonce, the text, 16 bytes of tag. Version
 * 0 pads the text to whole blocks of 16, version 1 does not. The mesh's label is authenticated with it.
 */
import { createCipheriv, createDecipheriv } from "node:crypto";
import { Fault } from "#base/fault.ts";
import { joined } from "./msgpack-writer.ts";

export const nonceBytes = 12;
const tagBytes = 16;
const blockBytes = 16;

export type SealVersion = 0 | 1;

/** What sealing adds at most. */
export const sealOverheadBytes = (version: SealVersion): number =>
  1 + nonceBytes + tagBytes + (version === 0 ? blockBytes : 0);

export const sealedBytes = (version: SealVersion, plainBytes: number): number =>
  1 + nonceBytes + tagBytes + plainBytes + (version === 0 ? blockBytes - (plainBytes % blockBytes) : 0);

export type Seal = {
  readonly version: SealVersion;
  readonly key: Uint8Array;
  /** Must never repeat with one key. */
  readonly nonce: Uint8Array;
  readonly authenticated: Uint8Array;
};

export function seal(plain: Uint8Array, { version, key, nonce, authenticated }: Seal): Uint8Array {
  const cipher = createCipheriv(cipherFor(key), key, nonce, { authTagLength: tagBytes });
  cipher.setAAD(authenticated);
  const padding = version === 0 ? blockBytes - (plain.length % blockBytes) : 0;
  return joined([
    Uint8Array.of(version),
    nonce,
    cipher.update(plain),
    cipher.update(new Uint8Array(padding).fill(padding)),
    cipher.final(),
    cipher.getAuthTag(),
  ]);
}

/** Tries each key; throws "invalid" if none opens it. */
export function unseal(sealed: Uint8Array, keys: readonly Uint8Array[], authenticated: Uint8Array): Uint8Array {
  const version = sealed[0];
  if (version !== 0 && version !== 1) throw refused("its version is unknown");
  if (sealed.length < sealedBytes(version, 0)) throw refused("it is too short");
  for (const key of keys) {
    const plain = open(sealed, key, authenticated);
    if (plain) return version === 0 ? unpadded(plain) : plain;
  }
  throw refused("no key opens it");
}

function open(sealed: Uint8Array, key: Uint8Array, authenticated: Uint8Array): Uint8Array | undefined {
  const nonce = sealed.subarray(1, 1 + nonceBytes);
  const decipher = createDecipheriv(cipherFor(key), key, nonce, { authTagLength: tagBytes });
  decipher.setAAD(authenticated);
  decipher.setAuthTag(sealed.subarray(sealed.length - tagBytes));
  try {
    return joined([
      decipher.update(sealed.subarray(1 + nonceBytes, sealed.length - tagBytes)),
      decipher.final(), // throws if the tag does not match the key
    ]);
  } catch {
    return undefined;
  }
}

function unpadded(plain: Uint8Array): Uint8Array {
  const padding = plain.at(-1) ?? 0;
  if (padding === 0 || padding > blockBytes || padding > plain.length) throw refused("its padding is wrong");
  return plain.subarray(0, plain.length - padding);
}

const cipherFor = (key: Uint8Array): "aes-128-gcm" | "aes-192-gcm" | "aes-256-gcm" =>
  key.length === 16 ? "aes-128-gcm" : key.length === 24 ? "aes-192-gcm" : "aes-256-gcm";

const refused = (why: string): Fault => new Fault("invalid", "open a sealed message", { why });
