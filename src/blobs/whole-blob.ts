/** Reads a blob in one piece. The caller must not change the bytes: they may be the store's own memory. */
import type { Digest } from "#base/digest.ts";
import type { BlobStore } from "./store.ts";

export async function wholeBlob(blobs: BlobStore, digest: Digest): Promise<Uint8Array> {
  const at = blobs.prompt?.bytes(digest);
  if (at) return at;
  const parts: Uint8Array[] = [];
  for await (const part of blobs.read(digest)) parts.push(Uint8Array.from(part));
  return parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts);
}
