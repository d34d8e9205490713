/** Stores a file that is finished: as it is where the store can take it, or as a copy. It may be gone afterwards. */
import { createReadStream } from "node:fs";
import type { Digest } from "#base/digest.ts";
import type { BlobStore } from "./store.ts";

export async function keepFile(blobs: BlobStore, digest: Digest, path: string): Promise<void> {
  if (await blobs.adopt?.(digest, path)) return;
  await blobs.write(digest, createReadStream(path, { highWaterMark: 1024 * 1024 }));
}
