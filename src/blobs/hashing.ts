/** The digest functions: in one call for small input, incrementally for large input. */
import { createHash, hash as hashOnce } from "node:crypto";
import { createRequire } from "node:module";
import { digestText, parseDigest, type Digest, type DigestFunction, type DigestParts } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { PlainBlake3 } from "./blake3-plain.ts";

export type Hasher = {
  update(bytes: Uint8Array): unknown;
  /** Ends the hash; may be called once. */
  hex(): string;
};

/** The hash in hex. */
export function hashHex(fn: DigestFunction, bytes: Uint8Array): string {
  if (fn !== "blake3") return hashOnce(fn, bytes);
  const digest = native ? native.blake3(asBuffer(bytes)) : new PlainBlake3().update(bytes).digest();
  return digest.toString("hex");
}

export function createHasher(fn: DigestFunction): Hasher {
  if (fn === "blake3") return blake3Hasher();
  const hash = createHash(fn);
  return { update: (bytes) => hash.update(bytes), hex: () => hash.digest("hex") };
}

export const digestOf = (bytes: Uint8Array, fn: DigestFunction = "sha256"): Digest =>
  digestText(fn, hashHex(fn, bytes), bytes.length);

/** Whether BLAKE3 runs as native code here. */
export const hasNativeBlake3 = (): boolean => native !== undefined;

/** Splits a digest into its parts; throws "invalid" for a text that is not a digest. */
export function partsOf(digest: Digest): DigestParts {
  const parts = parseDigest(digest);
  if (!parts) throw new Fault("invalid", "name blob", { digest: digest.slice(0, 150) });
  return parts;
}

type NativeBlake = {
  blake3(input: Buffer): Buffer;
  readonly Blake3Hasher: new () => { update(input: Buffer): unknown; digest(format: "hex"): string };
};

const native: NativeBlake | undefined = loadNative();

/** The native package has prebuilt binaries for most platforms. Undefined on the others. */
function loadNative(): NativeBlake | undefined {
  try {
    return createRequire(import.meta.url)("@napi-rs/blake-hash") as NativeBlake;
  } catch {
    return undefined;
  }
}

function blake3Hasher(): Hasher {
  if (!native) {
    const plain = new PlainBlake3();
    return { update: (bytes) => plain.update(bytes), hex: () => plain.digest().toString("hex") };
  }
  const hash = new native.Blake3Hasher();
  return { update: (bytes) => hash.update(asBuffer(bytes)), hex: () => hash.digest("hex") };
}

const asBuffer = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
