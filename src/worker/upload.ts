/** Puts what an attempt has made into the store, before anything names it (W3). */
import type { Digest } from "#base/digest.ts";
import { Fault, isFault } from "#base/fault.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { Left, Output } from "./runner.ts";

/** All blobs that it names, each once. */
export const digestsOf = ({ outputs = [], digests = [] }: Omit<Left, "payload">): readonly Digest[] => [
  ...new Set([...outputs.map(({ digest }) => digest), ...digests]),
];

export async function uploadAll(outputs: readonly Output[], blobs: BlobStore): Promise<void> {
  if (outputs.length === 0) return;
  const missing = new Set(await blobs.missing(outputs.map(({ digest }) => digest)));
  for (const { digest, bytes } of outputs) {
    if (!missing.delete(digest)) continue;
    try {
      await blobs.write(digest, bytes);
    } catch (error) {
      throw isFault(error) ? error : new Fault("unavailable", "upload output", { digest }, error);
    }
  }
}
