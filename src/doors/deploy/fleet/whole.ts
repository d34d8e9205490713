import { digestSizeBytes, type Digest } from "#base/digest.ts";
import { Fault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";

const documentBytesMax = 64 * 1024 * 1024;

/** A document of this door's, as text. */
export async function readWhole(blobs: BlobStore, digest: Digest): Promise<string> {
  if (!(digestSizeBytes(digest) <= documentBytesMax))
    throw new Fault("exhausted", "read document", { digest, bytesMax: documentBytesMax });
  const parts: Uint8Array[] = [];
  for await (const part of blobs.read(digest)) parts.push(part.slice());
  return Buffer.concat(parts).toString("utf8");
}
