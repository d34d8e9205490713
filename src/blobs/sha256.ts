import { createHash } from "node:crypto";
import { digestSizeBytes, digestText, isDigest, parseDigest, type Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import { createHasher } from "./hashing.ts";

export const sha256Digest = (bytes: Uint8Array): Digest =>
  `${createHash("sha256").update(bytes).digest("hex")}/${bytes.length}`;

/** One spelling for each blob: the function is left out for SHA-256. */
export function canonical(digest: Digest): Digest {
  if (!isDigest(digest)) throw new Fault("invalid", "name blob", { digest: digest.slice(0, 100) });
  return digest.startsWith("sha256:") ? digest.slice("sha256:".length) : digest;
}

/** Passes the bytes on and throws unless they have the digest; more bytes than it says are never let through. */
export async function* verified(
  digest: Digest,
  source: AsyncIterable<Uint8Array> | Uint8Array,
): AsyncGenerator<Uint8Array> {
  const { fn, sizeBytes: wantedBytes } = parseDigest(digest) ?? { fn: "sha256" as const, sizeBytes: Number.NaN };
  const hasher = createHasher(fn);
  let sizeBytes = 0;
  for await (const part of source instanceof Uint8Array ? [source] : source) {
    sizeBytes += part.length;
    if (!(sizeBytes <= wantedBytes))
      throw new Fault("invalid", "write blob", { digest, why: "more bytes than the digest says" });
    hasher.update(part);
    yield part;
  }
  const got = digestText(fn, hasher.hex(), sizeBytes);
  if (got !== digest) throw new Fault("invalid", "write blob", { digest, got, why: "the bytes have another digest" });
}

export function checkedOffset(digest: Digest, offset: number): number {
  if (offset >= 0 && offset <= digestSizeBytes(digest)) return offset;
  throw new Fault("invalid", "read blob", { digest, offset, why: "the range begins outside the blob" });
}
