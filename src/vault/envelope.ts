/**
 * A sealed value: AES-256-GCM under a data key of its own, which is wrapped by a key-encryption key. What the value
 * belongs to is authenticated with it: moved to another tenant or name, it does not open.
 */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { Fault } from "#base/fault.ts";

/** A key-encryption key: 32 bytes, and the name that sealed values know it by. */
export type WrappingKey = { readonly id: string; readonly bytes: Uint8Array };

export type Sealed = {
  /** The id of the key that wraps the data key. */
  readonly key: string;
  /** Nonce, ciphertext and tag, in base64url, as `data`. */
  readonly wrapped: string;
  readonly data: string;
};

export const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;

export function seal(value: Uint8Array, key: WrappingKey, belongsTo: string): Sealed {
  const dataKey = randomBytes(keyBytes);
  try {
    const data = encrypt(value, dataKey, `value ${belongsTo}`);
    return { key: key.id, wrapped: encrypt(dataKey, key.bytes, `key ${key.id} ${belongsTo}`), data };
  } finally {
    dataKey.fill(0);
  }
}

export function unseal(sealed: Sealed, key: WrappingKey, belongsTo: string): Buffer {
  const dataKey = unwrap(sealed, key, belongsTo);
  try {
    return decrypt(sealed.data, dataKey, `value ${belongsTo}`);
  } finally {
    dataKey.fill(0);
  }
}

/** The same value under another key; the value itself is not read. */
export function rewrap(sealed: Sealed, from: WrappingKey, to: WrappingKey, belongsTo: string): Sealed {
  const dataKey = unwrap(sealed, from, belongsTo);
  try {
    return { ...sealed, key: to.id, wrapped: encrypt(dataKey, to.bytes, `key ${to.id} ${belongsTo}`) };
  } finally {
    dataKey.fill(0);
  }
}

const unwrap = ({ wrapped }: Sealed, { id, bytes }: WrappingKey, belongsTo: string): Buffer =>
  decrypt(wrapped, bytes, `key ${id} ${belongsTo}`);

function encrypt(value: Uint8Array, key: Uint8Array, about: string): string {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.from(about));
  const parts = [nonce, cipher.update(value), cipher.final()];
  return Buffer.concat([...parts, cipher.getAuthTag()]).toString("base64url");
}

function decrypt(text: string, key: Uint8Array, about: string): Buffer {
  const bytes = Buffer.from(text, "base64url");
  try {
    const nonce = bytes.subarray(0, nonceBytes);
    const cipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: tagBytes });
    cipher.setAAD(Buffer.from(about)).setAuthTag(bytes.subarray(-tagBytes));
    return Buffer.concat([cipher.update(bytes.subarray(nonceBytes, -tagBytes)), cipher.final()]);
  } catch {
    // The cause would say nothing more, and must not carry bytes along.
    throw new Fault("corrupt", "open a sealed value", {
      why: "it was changed, or sealed by another key or for another",
    });
  }
}
