import { createHash } from "node:crypto";
import type { Digest } from "#base/digest.ts";
import type { BlobStore } from "#blobs/store.ts";

/** The bytes that a piece of simulated work produces: always the same for the same work. */
export async function makeOutputs(blobs: BlobStore, seed: string, count: number): Promise<readonly Digest[]> {
  const digests: Digest[] = [];
  for (let i = 0; i < count; i += 1) {
    const bytes = Buffer.from(`output ${i} of ${seed}`);
    const digest = digestOf(bytes);
    await blobs.write(digest, bytes);
    digests.push(digest);
  }
  return digests;
}

export const digestOf = (bytes: Uint8Array): Digest =>
  `${createHash("sha256").update(bytes).digest("hex")}/${bytes.length}`;
