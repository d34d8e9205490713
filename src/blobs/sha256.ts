import { createHash } from "node:crypto";
import { digestSizeBytes, isDigest, type Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";

export const sha256Digest = (bytes: Uint8Array): Digest =>
  `${createHash("sha256").update(bytes).digest("hex")}/${bytes.length}`;

/** One spelling for each blob: the function is left out for SHA-256, the only one that is verified here. */
export function canonical(digest: Digest): Digest {
  if (!isDigest(digest)) throw new Fault("invalid", "name blob", { digest: digest.slice(0, 100) });
  if (digest.startsWith("blake3:"))
    throw new Fault("invalid", "name blob", { digest, why: "only SHA-256 is supported here" });
  return digest.startsWith("sha256:") ? digest.slice("sha256:".length) : digest;
}

/** Passes the bytes on and throws unless they have the digest; more bytes than it says are never let through. */
export async function* verified(
  digest: Digest,
  source: AsyncIterable<Uint8Array> | Uint8Array,
): AsyncGenerator<Uint8Array> {
  const hash = createHash("sha256");
  const wantedBytes = digestSizeBytes(digest);
  let sizeBytes = 0;
  for await (const part of source instanceof Uint8Array ? [source] : source) {
    sizeBytes += part.length;
    if (sizeBytes > wantedBytes)
      throw new Fault("invalid", "write blob", { digest, why: "more bytes than the digest says" });
    hash.update(part);
    yield part;
  }
  const got = `${hash.digest("hex")}/${sizeBytes}`;
  if (got !== digest) throw new Fault("invalid", "write blob", { digest, got, why: "the bytes have another digest" });
}

export function checkedOffset(digest: Digest, offset: number): number {
  if (offset >= 0 && offset <= digestSizeBytes(digest)) return offset;
  throw new Fault("invalid", "read blob", { digest, offset, why: "the range begins outside the blob" });
}
